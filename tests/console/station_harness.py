"""Runs a real station process over a scripted engine, in places of its own, and ends whatever is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import psutil

from console.cli.leftovers import end_all
from console.cli.station import ask
from console.feed.messages import EngineView, Snapshot
from console.station.options import StationOptions, write_options
from engine.process import ManagedProcess
from engine.records import PolicyMode
from tests.ports import free_port

T = TypeVar("T")

DEADLINE_SECONDS = 60.0
SCRIPTED = Path(__file__).with_name("scripted_engine.py")
ENGINE_COMMAND = [sys.executable, str(SCRIPTED)]
VANILLA_COMMAND = [*ENGINE_COMMAND, "--vanilla"]
"""The same without a drafter."""


def until(condition: Callable[[], T | None], what: str) -> T:
    """Wait for something to become true; the deadline only keeps a broken test from hanging."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never came: {what}")


class StationUnderTest:
    """`directory` is short (socket paths) and holds everything. The test's environment must point into it too."""

    def __init__(self, directory: Path, **overrides: Any) -> None:
        self.run_dir = directory / "run"
        self.data_dir = directory / "data"
        self.store = directory / "store.duckdb"
        defaults: dict[str, Any] = {
            "store": str(self.store), "port": free_port(), "engine_command": ENGINE_COMMAND,
            "vanilla_command": VANILLA_COMMAND, "policy": PolicyMode(mode="static", k=4), "calibrate": 0.0,
        }  # fmt: skip
        self.options = StationOptions(**(defaults | overrides))
        self._options_file = directory / "options.json"
        self._output = directory / "station.out"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> StationUnderTest:
        write_options(self.options, self._options_file)
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "console.station", str(self._options_file)], stdout=output, stderr=output
            )
        self.wait(lambda seen: True, "an answer of the station")
        return self

    def output(self) -> str:
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def kill(self) -> None:
        """As `kill -9`."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def snapshot(self) -> Snapshot | None:
        try:
            return ask("snapshot", Snapshot, seconds=5.0)
        except click.ClickException:
            return None

    def wait(self, condition: Callable[[Snapshot], bool], what: str) -> Snapshot:
        def look() -> Snapshot | None:
            snapshot = self.snapshot()
            return snapshot if snapshot is not None and condition(snapshot) else None

        try:
            return until(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\nlast seen: {self.snapshot()}\n{self.output()[-3000:]}") from None

    def wait_serving(self) -> Snapshot:
        """Until the engine serves and its rows arrive in figures."""
        return self.wait(
            lambda seen: engine(seen).state == "serving" and bool(seen.buckets), "rows of a serving engine"
        )

    def engine_pid(self, name: str = "e0") -> int:
        return self.managed(f"engine-{name}").pid

    def managed(self, role: str) -> ManagedProcess:
        process = ManagedProcess.recall(self.run_dir / f"{role}.json")
        assert process is not None, f"no state file of {role}"
        return process

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        end_all()


def engine(snapshot: Snapshot, name: str = "e0") -> EngineView:
    return next(view for view in snapshot.engines if view.engine == name)


def living(pids: list[int]) -> list[int]:
    """Those of `pids` that still run; a zombie does not."""
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def start_own_engine(run_dir: Path, name: str) -> subprocess.Popen[bytes]:
    """An engine that somebody else started: bring your own."""
    env = {**os.environ, "SPECDECK_SOCKET": str(run_dir / "telemetry"), "SPECDECK_ENGINE": name}
    return subprocess.Popen([*ENGINE_COMMAND, "--no-http"], env=env)
