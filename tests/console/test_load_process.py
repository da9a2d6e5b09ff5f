"""The load generator as the process that it is: what it sends, what it tells, and that nothing is left behind however
it or its starter ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from console.rehearsing.load.command import BAD_INPUT, main
from console.rehearsing.load.front import LoadFailed, LoadProgress, LoadSummary, send
from tests.console.fake_engine import Call, fake_server
from tests.console.gateway_process import DEADLINE
from tests.console.load_cases import answer_whole, drawn, every, outcomes_in, written


async def _send(
    requests: Path, url: str, on_progress: Callable[[LoadProgress], None] = lambda progress: None, **changed: Any
) -> LoadSummary:
    arguments: dict[str, Any] = {"base_url": url, "api_key": None, "model": "m", "tag_prefix": ""} | changed
    outcomes = arguments.pop("outcomes", requests.with_name("outcomes.jsonl"))
    async with asyncio.timeout(DEADLINE):
        return await send(requests, outcomes, on_progress=on_progress, **arguments)


def _load_processes(of: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(of).children():
        with suppress(psutil.Error):  # ended meanwhile, or left by another test until it is waited for
            if "console.rehearsing.load" in child.cmdline():
                found.append(child)
    return found


class _Held:
    """A server that answers those of `answered` (by seed) and holds the others until they leave."""

    def __init__(self, *answered: int) -> None:
        self.answered = answered
        self.here, self.gone = asyncio.Event(), asyncio.Event()

    async def __call__(self, call: Call) -> None:
        if json.loads(call.body)["seed"] in self.answered:
            return await answer_whole(call)
        self.here.set()
        await call.client_left()
        self.gone.set()


async def test_it_sends_what_was_drawn_with_the_key_out_of_sight_and_tells_what_came(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = []
    keys, lines = set(), []

    async def look(call: Call) -> None:
        if call.target == b"/v1/models":
            return await call.respond(b'{"data": [{"id": "served"}]}')
        bodies.append(json.loads(call.body))
        keys.add(call.header(b"authorization"))
        lines.extend(str(process.cmdline()) for process in _load_processes(os.getpid()))
        await answer_whole(call)

    requests = [
        drawn(0, 0.0, workload="chat", temperature=0.7),
        drawn(1, 1.2, max_tokens=9, exact=True),
    ]
    told: list[LoadProgress] = []
    async with fake_server(look) as url:
        file = written(tmp_path / "requests.jsonl", reversed(requests))
        summary = await _send(file, url, told.append, api_key="se-cret", model=None, tag_prefix="rehearsal/")
    common = {
        "model": "served",
        "messages": [{"role": "user", "content": "say ä"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    (salt,) = {body.pop("cache_salt") for body in bodies}
    assert len(salt) == 32, "a pass shares vLLM's prefix cache with no other pass"
    assert bodies == [
        common
        | {"max_tokens": 3, "temperature": 0.7, "seed": 0, "vllm_xargs": {"workload": "rehearsal/chat"}},
        common
        | {"max_tokens": 9, "temperature": 0.0, "seed": 1, "vllm_xargs": {"workload": "rehearsal/code"}}
        | {"ignore_eos": True, "min_tokens": 9},
    ]  # fmt: skip
    assert keys == {b"Bearer se-cret"}
    assert lines
    assert not [line for line in lines if "se-cret" in line]
    assert [outcome.id for outcome in outcomes_in(tmp_path / "outcomes.jsonl")] == ["r0", "r1"]
    assert (summary.requests, summary.errors) == (2, 0)
    assert 0 < summary.cpu_seconds < summary.end - summary.start
    assert 0.0 <= told[0].elapsed < 1.0
    assert [progress.sent for progress in told] == sorted(progress.sent for progress in told)
    assert (told[-1].sent, told[-1].done, told[-1].in_flight, told[-1].errors) == (2, 2, 0, 0)


async def test_cancelled_it_is_ended_and_the_server_sees_its_clients_leave(tmp_path: Path) -> None:
    server = _Held(0)
    requests = written(tmp_path / "requests.jsonl", [*every(0.05, 3), drawn(9, 60.0)])
    async with asyncio.timeout(DEADLINE), fake_server(server) as url:
        sending = asyncio.create_task(_send(requests, url))
        await server.here.wait()
        await asyncio.sleep(0.3)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await server.gone.wait()
    assert _load_processes(os.getpid()) == []
    found = {outcome.id: outcome.error for outcome in outcomes_in(tmp_path / "outcomes.jsonl")}
    assert found == {"r0": None, "r1": "cancelled", "r2": "cancelled"}


async def test_killed_it_leaves_whole_lines_and_its_starter_says_so(tmp_path: Path) -> None:
    server = _Held(0, 1, 2)
    requests = written(tmp_path / "requests.jsonl", every(0.01, 4))
    async with asyncio.timeout(DEADLINE), fake_server(server) as url:
        sending = asyncio.create_task(_send(requests, url))
        await server.here.wait()
        while len(outcomes_in(tmp_path / "outcomes.jsonl")) < 3:
            await asyncio.sleep(0.02)
        (process,) = _load_processes(os.getpid())
        process.kill()
        with pytest.raises(LoadFailed, match="killed by signal 9"):
            await sending
    assert [outcome.error for outcome in outcomes_in(tmp_path / "outcomes.jsonl")] == [None] * 3


async def test_it_ends_by_itself_when_its_starter_is_killed(tmp_path: Path) -> None:
    server = _Held()
    requests = written(tmp_path / "requests.jsonl", [drawn(0, 0.0), drawn(1, 60.0)])
    script = """
import asyncio, sys
from pathlib import Path
from console.rehearsing.load.command import BAD_INPUT, main
from console.rehearsing.load.front import send
folder = Path(sys.argv[1])
asyncio.run(send(folder / "requests.jsonl", folder / "outcomes.jsonl", base_url=sys.argv[2], api_key=None, model="m",
                 tag_prefix="", on_progress=lambda progress: None))
"""
    async with asyncio.timeout(DEADLINE), fake_server(server) as url:
        starter = subprocess.Popen([sys.executable, "-c", script, str(requests.parent), url])
        await server.here.wait()
        (process,) = _load_processes(starter.pid)
        starter.kill()
        starter.wait()
        await server.gone.wait()
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.02)
    assert [outcome.error for outcome in outcomes_in(tmp_path / "outcomes.jsonl")] == ["cancelled"]


async def test_frozen_itself_it_tells_how_late_it_was_and_takes_nothing_out(tmp_path: Path) -> None:
    requests = written(tmp_path / "requests.jsonl", every(0.1, 16))
    frozen = False

    async def freeze(call: Call) -> None:
        nonlocal frozen
        await answer_whole(call)
        if b'"seed":3,' in call.body and not frozen:
            frozen = True
            (process,) = _load_processes(os.getpid())
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(0.8)
            process.send_signal(signal.SIGCONT)

    async with fake_server(freeze) as url:
        summary = await _send(requests, url)
    outcomes = outcomes_in(tmp_path / "outcomes.jsonl")
    assert 0.5 < summary.lag_max < 1.5
    assert summary.late_max > 0.5
    assert max((outcome.ended or 0.0) - outcome.at for outcome in outcomes) >= summary.lag_max


async def test_progress_that_nobody_reads_holds_up_no_request(tmp_path: Path) -> None:
    requests = written(tmp_path / "requests.jsonl", [drawn(0, 0.0), drawn(1, 1.5)])
    async with asyncio.timeout(DEADLINE), fake_server(answer_whole) as url:
        read, write = os.pipe()
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:  # until it is full
                os.write(write, bytes(4096))
        os.set_blocking(write, True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "console.rehearsing.load", str(requests), str(tmp_path / "outcomes.jsonl")),
            *("--base-url", url, "--model", "m"),
            stdin=subprocess.PIPE,
            stdout=write,
        )
        os.close(write)
        outcomes = tmp_path / "outcomes.jsonl"
        while not outcomes.exists() or len(outcomes_in(outcomes)) < 2:
            await asyncio.sleep(0.05)
        said = b""
        while piece := await asyncio.to_thread(os.read, read, 65536):
            said += piece
        assert await process.wait() == 0
        os.close(read)
    assert json.loads(said.lstrip(b"\0").splitlines()[-1])["type"] == "summary"
    assert all((outcome.sent or 9.9) - outcome.at < 0.5 for outcome in outcomes_in(outcomes))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"outcomes": Path("/dev/full")}, "/dev/full: No space left on device"),
        ({"outcomes": Path("/nowhere/at/all/outcomes.jsonl")}, "/nowhere/at/all"),
        ({"base_url": "localhost:8000"}, "localhost:8000"),
        ({"base_url": "http://no.such.host.invalid/v1"}, "no.such.host.invalid"),
        ({"api_key": "a\nb"}, "API key"),
        ({"base_url": "http://127.0.0.1:9", "model": None}, "unreachable"),
    ],
    ids=["disk", "folder", "url", "name", "key", "server"],
)
async def test_a_pass_that_cannot_be_sent_says_why(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    requests = written(tmp_path / "requests.jsonl", every(0.01, 3))
    async with fake_server(answer_whole) as url:
        with pytest.raises(LoadFailed, match=words):
            await _send(requests, url, **changed)


@pytest.mark.parametrize("line", [b"{half", b'{"id": 7}', b"[]", b"\xff"])
def test_a_broken_request_is_named_before_any_is_sent(tmp_path: Path, line: bytes) -> None:
    requests = written(tmp_path / "requests.jsonl", every(0.0, 2))
    requests.write_bytes(requests.read_bytes() + line + b"\n")
    base = ["--base-url", "http://127.0.0.1:9", "--model", "m"]
    assert main([str(requests), str(tmp_path / "outcomes.jsonl"), *base]) == BAD_INPUT
    assert not (tmp_path / "outcomes.jsonl").exists()
