"""A real `specdeck serve` with a real engine, and what a test needs to talk to it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import psutil

from console.feed.client import FeedClient
from console.feed.messages import Snapshot
from console.feed.protocol import PolicyResult, PolicySet
from engine.records import PolicyMode, Record
from engine.sockets import Sockets
from tests.ports import free_port

SPECDECK = Path(sys.executable).with_name("specdeck")
START_SECONDS = 300.0

T = TypeVar("T")


def until(what: str, found: Callable[[], T | None], seconds: float = 60.0) -> T:
    """Poll until `found` returns something true; an error that names `what` after the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds:.0f} s")


class Served:
    """One running specdeck in places of its own."""

    def __init__(
        self, directory: Path, *options: str, policy: str | None = "static:4", calibrated: bool = False
    ) -> None:
        """`policy` None: as specdeck begins by itself. `calibrated`: with its own first measurements."""
        self.directory = directory
        self.port = free_port()
        self.env = os.environ | {
            "SPECDECK_RUNTIME_DIR": str(directory / "run"),
            "SPECDECK_DATA_DIR": str(directory / "data"),
        }
        policy_options = () if policy is None else ("--policy", policy)
        self.options = (*options, *policy_options, *(() if calibrated else ("--no-calibration",)))
        self.sockets = Sockets(directory / "run")
        self.url = f"http://127.0.0.1:{self.port}"
        self._sessions: set[int] = set()
        self.process = self._serve()

    def _serve(self) -> subprocess.Popen[bytes]:
        out = (self.directory / "serve.log").open("ab")
        return subprocess.Popen(
            [SPECDECK, "serve", "--port", str(self.port), *self.options],
            env=self.env,
            stdout=out,
            stderr=out,
            cwd=self.directory,
            start_new_session=True,
        )

    def serve_again(self) -> None:
        self.process = self._serve()

    def specdeck(self, *arguments: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SPECDECK, *arguments],
            env=self.env,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def ask(self, method: str, params: msgspec.Struct | None, result_type: type[T], seconds: float = 30.0) -> T:
        async def asked() -> T:
            async with FeedClient(self.sockets.feed, self.sockets.snapshots) as feed:
                return await feed.request(method, params, result_type, seconds)  # type: ignore[arg-type]

        return asyncio.run(asked())

    def snapshot(self) -> Snapshot:
        return self.ask("snapshot", None, Snapshot)

    def snapshot_or_none(self) -> Snapshot | None:
        try:
            return self.ask("snapshot", None, Snapshot, 3.0)
        except Exception:
            return None

    def wait_serving(self, seconds: float = START_SECONDS) -> Snapshot:
        def serving() -> Snapshot | None:
            assert self.process.poll() is None, f"specdeck serve ended with {self.process.returncode}"
            picture = self.snapshot_or_none()
            if picture is not None and any(
                engine.state == "failed" and engine.restarts >= 3 for engine in picture.engines
            ):
                raise AssertionError("the engine fails to start again and again")
            if picture is None or not any(engine.state == "serving" for engine in picture.engines):
                return None
            try:
                answered = httpx.get(f"{self.url}/health", timeout=5.0).status_code == 200
            except httpx.HTTPError:
                return None
            return picture if answered else None

        try:
            return until("engine serving behind the gateway", serving, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        """The ends of all logs, for a failure's message."""
        paths = [self.directory / "serve.log", *sorted((self.directory / "data").rglob("*.log"))]
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-12000:]}" for path in paths if path.exists()
        )

    def policy(self, mode: PolicyMode) -> int:
        """Set the base policy and wait until the engine's own stamp says that it is applied."""
        version = self.ask("policy_set", PolicySet(policy=mode), PolicyResult).version

        def applied() -> bool:
            return any((engine.policy_applied or 0) >= version for engine in self.snapshot().engines)

        # An idle engine says what it applied with its next announcement, at the latest 10 s later.
        until(f"policy version {version} applied", applied, 30.0)
        return version

    def complete(
        self, body: dict[str, Any], request_id: str | None = None, path: str = "completions"
    ) -> dict[str, Any]:
        headers = {"X-Request-Id": request_id} if request_id else {}
        body = {"model": self.model(), **body}
        answer = httpx.post(f"{self.url}/v1/{path}", json=body, headers=headers, timeout=180.0)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def model(self) -> str:
        return str(httpx.get(f"{self.url}/v1/models", timeout=10.0).json()["data"][0]["id"])

    def records(self) -> list[Record]:
        """Everything recorded so far, through `specdeck export`."""
        from store.trace import read_records

        out = self.directory / f"export-{time.monotonic_ns()}.jsonl"
        done = self.specdeck("export", str(out))
        assert done.returncode == 0, done.stderr
        return list(read_records(out))

    def report(self) -> dict[str, Any]:
        done = self.specdeck("report", "--json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def pids(self) -> dict[str, int]:
        """Processes by role: station, gateway, and vLLM's three."""
        found: dict[str, int] = {}
        for process in psutil.process_iter():
            try:
                role = self._role(process)
            except (psutil.Error, OSError):
                continue
            if role is not None:
                found[role] = process.pid
        return found

    def _role(self, process: psutil.Process) -> str | None:
        """vLLM renames its processes and with that overwrites their environment: those are known by their session."""
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        line = " ".join(process.cmdline())
        role = next((role for role, word in ROLES.items() if word in line), None)
        if role in ("engine_core", "worker"):
            return role if os.getsid(process.pid) in self._sessions else None
        if process.environ().get("SPECDECK_RUNTIME_DIR") != self.env["SPECDECK_RUNTIME_DIR"]:
            return None
        if role == "api_server":
            self._sessions.add(os.getsid(process.pid))
        return role

    def leftovers(self) -> list[str]:
        return [f"{role} {pid}" for role, pid in self.pids().items()]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


ROLES = {
    "station": "specdeck serve",
    "gateway": "console.gateway",
    "api_server": "vllm.entrypoints",
    "engine_core": "VLLM::EngineCore",
    "worker": "VLLM::Worker",
}
