#!/usr/bin/env python3
"""For an owner of an NVIDIA GPU: runs once what its authors could only run on a CPU, and prints a report to send back.

    make gpu-check > report.json

An engine with our scheduler serves the bundled model (or `--model`, `--drafter`), answers requests at temperature 0 and
0.8, and our rows for each request are compared with what vLLM itself reports for it, step by step. Narration goes to
stderr; the report, with versions and the engine's own description of itself, to stdout. Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import zmq

from engine import doctor
from engine.frames import COLUMNS, Announcement, Frame, decode
from engine.health import failure_reason, healthy
from engine.launch import EngineSpec, SpecError, clear_remains, command, http_socket, served_name
from engine.models import ModelError, resolve
from engine.places import runtime_dir
from engine.policy import POLICY_WIRE_VERSION, PolicyMessage, PolicyState, encode_policy
from engine.process import ManagedProcess
from engine.records import PolicyMode
from engine.sockets import Sockets, ipc

START_SECONDS = 900.0
REPEAT = (
    "Copy this text word for word, then copy it once more: The red fox ran over the green hill. The red fox ran over "
    "the blue hill. The red fox ran over the grey hill. The red fox ran over the white hill."
)
WRITE = "Write a short story about a lighthouse keeper who finds a map."


class Station:
    """The least of a station: keeps what the engine sends, and publishes one policy."""

    def __init__(self, sockets: Sockets, max_k: int) -> None:
        self.frames: list[Frame] = []
        self.announcements: list[Announcement] = []
        self.errors: list[str] = []
        state = PolicyState(version=1, policy=PolicyMode(mode="static", k=max_k))
        self._policy = encode_policy(PolicyMessage(POLICY_WIRE_VERSION, "gpu-check", state))
        self._pull: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._pull.bind(ipc(sockets.telemetry))
        self._publish: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.XPUB)
        self._publish.bind(ipc(sockets.policy))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._publish.send_multipart([b"e0", self._policy])
            until = time.monotonic() + 1.0
            while (left := until - time.monotonic()) > 0:
                if self._pull.poll(int(left * 1000) + 1):
                    self._take(self._pull.recv())

    def _take(self, payload: bytes) -> None:
        try:
            message = decode(payload)
        except ValueError as error:
            self.errors.append(str(error))
            return
        if isinstance(message, Frame):
            self.frames.append(message)
        else:
            self.announcements.append(message)

    def steps_of(self, response_id: str) -> list[tuple[int, int]]:
        """(drafted, accepted) of each step in which the request with this response id verified drafts."""
        handles = {s.seq for frame in self.frames for s in frame.sequences if s.request.startswith(response_id)}
        column = {name: index for index, name in enumerate(COLUMNS)}
        steps = []
        for frame in self.frames:
            if frame.step is None:
                continue
            values, count = array("i", frame.step.columns), frame.step.count
            for row in range(count):
                if values[column["seq"] * count + row] in handles:
                    drafted = values[column["drafted"] * count + row]
                    if drafted:
                        steps.append((drafted, values[column["accepted"] * count + row]))
        return steps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bundled", help="bundled, a folder or a hub name")
    parser.add_argument("--drafter", default="auto", help="auto, bundled, ngram, a folder or a hub name")
    parser.add_argument("--max-k", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as places:
        os.environ["SPECDECK_RUNTIME_DIR"] = places + "/run"
        os.environ["SPECDECK_DATA_DIR"] = places + "/data"
        spec = EngineSpec(
            model=options.model, drafter=options.drafter, max_k=options.max_k, per_request_metrics="detailed"
        )
        try:
            report = check(spec, Path(places))
        except (SpecError, ModelError) as error:
            print(f"specdeck: {error}", file=sys.stderr)
            return 2
    print(json.dumps(report, indent=1))
    return 0 if report["passed"] else 1


def check(spec: EngineSpec, places: Path) -> dict[str, Any]:
    say("doctor")
    report: dict[str, Any] = {"doctor": [check._asdict() for check in doctor.checks()], "passed": False}
    directory = runtime_dir()
    station = Station(Sockets(directory), spec.max_k)
    target = resolve(spec.model, say)
    clear_remains(spec, directory)
    argv, env = command(spec, directory, target)
    say("starting the engine")
    started = time.monotonic()
    process = ManagedProcess.start(argv, env, places / "e0.log", directory / "e0.json")
    try:
        while not healthy(http_socket(spec.engine, directory)):
            if not process.alive() or time.monotonic() - started > START_SECONDS:
                report["log"] = process.log_text(20_000).splitlines()[-100:]
                report["failure"] = failure_reason(process.log_text()) or "the engine did not come up"
                return report
            time.sleep(0.5)
        report["start_seconds"] = round(time.monotonic() - started, 1)
        report["requests"] = ask_all(http_socket(spec.engine, directory), served_name(spec, target), station)
    finally:
        process.terminate_group(20)
    report["engine"] = msgspec.to_builtins(station.announcements[-1].record) if station.announcements else None
    report["telemetry_errors"] = station.errors[:5]
    report["left_behind"] = [stat.name for stat in process.leftovers()]
    same = all(request["same"] for request in report["requests"])
    if not any(request.get("steps") for request in report["requests"]):
        same, report["failure"] = False, "nothing was drafted: nothing was compared"
    report["passed"] = bool(same and report["engine"] and not station.errors and not report["left_behind"])
    return report


def ask_all(uds: Path, model: str, station: Station) -> list[dict[str, Any]]:
    """16 requests at once, then each one's steps by vLLM's account and by ours."""
    say("asking 16 requests at once")
    bodies = [
        {"prompt": prompt, "temperature": temperature, "max_tokens": 96, "seed": seed}
        for seed in range(4)
        for prompt in (REPEAT, WRITE)
        for temperature in (0.0, 0.8)
    ]
    with ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda body: ask(uds, model, body), bodies))
    time.sleep(2.0)  # the last frames are on their way
    return [compare(body, answer, station) for body, answer in zip(bodies, answers, strict=True)]


def ask(uds: Path, model: str, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "user", "content": body["prompt"]}
    rest = {key: value for key, value in body.items() if key != "prompt"}
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(uds)), timeout=600) as client:
        answer = client.post("http://engine/v1/chat/completions", json={"model": model, "messages": [message], **rest})
    return dict(answer.json()) if answer.is_success else {"error": answer.text[:500]}


def compare(body: dict[str, Any], answer: dict[str, Any], station: Station) -> dict[str, Any]:
    result: dict[str, Any] = {"temperature": body["temperature"], "prompt": body["prompt"][:20]}
    if "error" in answer:
        return result | {"same": False, "error": answer["error"]}
    own = (answer.get("metrics") or {}).get("speculative_decoding") or {}
    drafted, accepted = own.get("per_step_drafted") or [], own.get("per_step_accepted") or []
    theirs = [pair for pair in zip(drafted, accepted, strict=True) if pair[0]]
    ours = station.steps_of(answer["id"])
    result |= {"same": theirs == ours, "steps": len(ours), "drafted": sum(drafted), "accepted": sum(accepted)}
    if theirs != ours:
        result |= {"vllm": theirs[:50], "specdeck": ours[:50]}
    return result


def say(text: str) -> None:
    print(f"specdeck: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
