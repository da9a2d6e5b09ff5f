"""Sending demo traffic: open loop, within its limit, patient with a dead server, and honest about every request.

The engine is a stand-in (`fake_engine`) behind a real gateway: these tests are about the sender.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from console.traffic import Phase, Profile, Progress, Result, ServerUnreachable, run, runner
from console.traffic.client import Outcome
from console.traffic.command import _narrator
from console.traffic.plan import PROFILES, make_plan
from console.traffic.prompts import WORKLOADS
from console.traffic.runner import _Pause
from tests.console.fake_engine import Call, Handler, chat_engine, fake_engine
from tests.console.gateway_process import DEADLINE, Gateway, gateway_environment, running_gateway

SHARES = PROFILES["demo"].shares


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with running_gateway() as process:
        yield process


@pytest.fixture
async def stop() -> AsyncIterator[asyncio.Event]:
    async with asyncio.timeout(2 * DEADLINE):
        yield asyncio.Event()


def _profile(seconds: float, rate: float) -> Profile:
    return Profile("test", (Phase("first", seconds / 2, rate), Phase("second", seconds / 2, rate)), SHARES)


def _base(gateway: Gateway) -> str:
    return gateway.url + "/v1"


async def test_every_planned_request_is_sent_tagged_and_answered(
    gateway: Gateway, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "PROGRESS_SECONDS", 0.1)
    seen: list[dict[str, object]] = []
    answer = chat_engine(tokens=5)

    async def keep(call: Call) -> None:
        if call.body:
            seen.append(json.loads(call.body))
        await answer(call)

    profile, progress = _profile(2.0, 10), list[Progress]()
    async with fake_engine(gateway.upstream, keep):
        result = await run(profile, _base(gateway), on_progress=progress.append, scale=1.0, stop=stop)
    plan = make_plan(profile, 7, 1.0)
    assert (result.sent, result.done, result.errors, result.shed) == (len(plan), len(plan), {}, {})
    for workload in WORKLOADS:
        mine = [request for request in plan if request.workload == workload]
        assert result.workloads[workload].done == len(mine)
        # Streamed answers here carry no usage, so only the others count tokens.
        assert result.workloads[workload].output_tokens == 5 * sum(not request.stream for request in mine)
    assert {body["model"] for body in seen} == {"fake-model"}
    sent = sorted((json.dumps(body["vllm_xargs"]), body["max_tokens"], bool(body.get("stream"))) for body in seen)
    assert sent == sorted((json.dumps({"workload": r.workload}), r.max_tokens, r.stream) for r in plan)
    assert {"first", "second"} <= {state.phase for state in progress}
    assert (progress[-1].phase, progress[-1].in_flight, progress[-1].done) == ("over", 0, len(plan))


async def test_arrivals_do_not_wait_for_answers(gateway: Gateway, stop: asyncio.Event) -> None:
    go, waiting = asyncio.Event(), 0
    answer = chat_engine(tokens=1)
    profile = _profile(1.0, 5)
    plan = make_plan(profile, 7, 1.0)

    async def hold(call: Call) -> None:
        nonlocal waiting
        if call.body:
            waiting += 1
            if waiting == len(plan):
                go.set()  # only an open loop gets the last one here while the first is still unanswered
            await go.wait()
        await answer(call)

    assert len(plan) <= 14
    async with fake_engine(gateway.upstream, hold):
        result = await run(profile, _base(gateway), scale=1.0, stop=stop)
    assert result.done == len(plan)


async def test_beyond_the_limit_in_flight_requests_are_shed_and_counted(gateway: Gateway, stop: asyncio.Event) -> None:
    profile = _profile(1.0, 60)
    plan = make_plan(profile, 7, 1.0)
    full = asyncio.Event()
    answer = chat_engine(tokens=1)

    def watch(progress: Progress) -> None:
        assert progress.in_flight <= 14
        if progress.phase == "ending":
            full.set()

    async def hold(call: Call) -> None:
        if call.body:
            await full.wait()
        await answer(call)

    async with fake_engine(gateway.upstream, hold):
        result = await run(profile, _base(gateway), on_progress=watch, scale=1.0, stop=stop)
    assert (result.sent, result.done) == (14, 14)
    assert result.shed == {"in-flight limit": len(plan) - 14}


async def test_latency_counts_from_the_moment_a_request_was_due(gateway: Gateway, stop: asyncio.Event) -> None:
    async with fake_engine(gateway.upstream, chat_engine(tokens=2, delay=0.05)):
        result = await run(_profile(1.0, 5), _base(gateway), scale=1.0, stop=stop)
    for row in result.workloads.values():
        assert row.latency_p50 is not None
        assert row.latency_p50 >= 0.1


async def test_a_server_that_dies_in_the_middle_is_noticed_spared_and_used_again(
    gateway: Gateway, stop: asyncio.Event
) -> None:
    notes: list[str] = []

    def watch(progress: Progress) -> None:
        notes.append(progress.note)

    async def whole() -> Result:
        return await run(_profile(12.0, 10), _base(gateway), on_progress=watch, scale=1.0, stop=stop)

    async def until(condition: str) -> None:
        while not (any(notes) if condition == "noticed" else not notes[-1]):
            await asyncio.sleep(0.05)

    async with fake_engine(gateway.upstream, chat_engine()):
        running = asyncio.create_task(whole())
        await asyncio.sleep(1.0)
    await until("noticed")
    async with fake_engine(gateway.upstream, chat_engine()):
        await until("back")
        result = await running
    assert any("server down" in note and "trying again" in note for note in notes)
    assert set(result.errors) <= {"http 503", "http 502", "error event"}
    assert 0 < sum(result.errors.values()) < 15
    assert result.shed["server down"] > 0
    assert result.sent == result.done + sum(result.errors.values())


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("http 400", b'HTTP/1.1 400 No\r\ncontent-length: 29\r\n\r\n{"error":{"message":"wrong"}}'),
        ("bad answer", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        ("connection lost", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf"),
    ],
)
async def test_each_kind_of_wrong_answer_is_counted_and_ends_nothing(
    gateway: Gateway, stop: asyncio.Event, kind: str, raw: bytes
) -> None:
    result = await _all_answered_with(gateway, stop, raw, stream=False)
    assert result.errors[kind] > 0
    assert result.done == 0


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("error event", b'data: {"error": {"message": "lost"}}\n\n'),
        ("cut short", b'data: {"choices": []}\n\n'),
        ("bad answer", b"data: {half\n\n"),
    ],
)
async def test_each_kind_of_wrong_stream_is_counted_and_ends_nothing(
    gateway: Gateway, stop: asyncio.Event, kind: str, events: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(events)
    result = await _all_answered_with(gateway, stop, head + events, stream=True)
    assert result.errors[kind] > 0


async def _all_answered_with(gateway: Gateway, stop: asyncio.Event, raw: bytes, *, stream: bool) -> Result:
    models = chat_engine()

    async def answer(call: Call) -> None:
        if not call.body:
            await models(call)
        elif bool(json.loads(call.body).get("stream")) == stream:
            await call.send(raw)
        else:
            await call.respond(b"{}")

    async with fake_engine(gateway.upstream, answer):
        return await run(_profile(1.0, 12), _base(gateway), scale=1.0, stop=stop)


async def test_without_a_server_it_gives_up_after_its_patience_and_says_what_it_met(gateway: Gateway) -> None:
    with pytest.raises(ServerUnreachable, match="http 503: The engine is not running"):
        await run(_profile(1.0, 5), _base(gateway), scale=1.0, patience_seconds=0.1)


def test_pauses_double_while_each_try_meets_no_server_and_end_with_the_first_answer() -> None:
    down, pause = Outcome(error="unreachable", server_down=True), _Pause()
    now, waits = 100.0, []
    for _ in range(7):
        pause.server_is_down(down, sent=now, now=now + 0.1)
        pause.server_is_down(down, sent=now - 1, now=now + 0.2)  # one from before the pause says nothing new
        waits.append(round(pause.left(now + 0.1)))
        now += 0.1 + waits[-1]
        assert pause.left(now) == 0
        pause.try_once(now)
        assert pause.left(now) > 0  # the others wait for what becomes of it
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    pause.over()
    assert (pause.left(now), pause.note(now)) == (0, "")


async def test_it_waits_for_a_server_that_is_still_starting(gateway: Gateway, stop: asyncio.Event) -> None:
    waiting = asyncio.Event()

    def watch(progress: Progress) -> None:
        if progress.note:
            waiting.set()

    running = asyncio.create_task(
        run(_profile(0.5, 4), _base(gateway), on_progress=watch, scale=1.0, stop=stop, patience_seconds=None)
    )
    await waiting.wait()
    async with fake_engine(gateway.upstream, chat_engine()):
        result = await running
    assert result.done == result.sent > 0
    assert result.errors == {}


async def test_stop_ends_it_at_once_with_what_was_done(gateway: Gateway, stop: asyncio.Event) -> None:
    answer = chat_engine()

    async def hold(call: Call) -> None:
        if call.body:
            stop.set()
            await call.client_left()
        await answer(call)

    async with fake_engine(gateway.upstream, hold):
        result = await run(_profile(1000.0, 5), _base(gateway), scale=1.0, stop=stop)
    assert result.interrupted
    assert result.errors == {"cancelled": result.sent}


@pytest.mark.parametrize(("tokens", "delay", "scale"), [(8, 0.2, 0.2), (5000, 0.0, 20.0)])
async def test_the_rates_are_fitted_to_the_server_within_bounds_when_no_scale_is_given(
    gateway: Gateway, stop: asyncio.Event, tokens: int, delay: float, scale: float
) -> None:
    async with fake_engine(gateway.upstream, chat_engine(tokens=tokens, delay=delay)):
        result = await run(_profile(0.2, 0.1), _base(gateway), stop=stop)
    assert result.scale == scale


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "console.traffic", *arguments]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--base-url", "localhost:8000"], "--base-url"),
        (["--base-url", "http://x/v1", "--duration", "0"], "--duration"),
        (["--base-url", "http://x/v1", "--scale", "-1"], "--scale"),
        (["--base-url", "http://x/v1", "--profile", "nope"], "--profile"),
        (["--base-url", "http://x/v1", "--api-key-file", "/nowhere/key"], "/nowhere/key"),
    ],
)
def test_bad_arguments_are_named_and_exit_2(arguments: list[str], named: str) -> None:
    done = subprocess.run(_command(*arguments), capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr


def test_the_command_without_a_server_exits_3(tmp_path: Path) -> None:
    command = _command("--base-url", "http://127.0.0.1:9/v1", "--patience", "0")
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


async def test_the_command_prints_the_result_as_json_and_ends_clean_on_ctrl_c(gateway: Gateway) -> None:
    arguments = ["--base-url", _base(gateway), "--profile", "steady", "--scale", "1", "--json"]
    async with asyncio.timeout(2 * DEADLINE), _counting_engine(gateway) as answered:
        process = await asyncio.create_subprocess_exec(
            *_command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=gateway_environment()
        )
        await answered.wait()
        process.send_signal(signal.SIGINT)
        out, narration = await process.communicate()
    result = json.loads(out)
    assert process.returncode == 130
    assert result["interrupted"] is True
    assert result["sent"] >= 1
    assert b"Traceback" not in narration


class _counting_engine:
    """A fake engine, and an event set once it has answered a chat request."""

    def __init__(self, gateway: Gateway) -> None:
        self._answered = asyncio.Event()
        self._engine = fake_engine(gateway.upstream, self._answer)
        self._handler: Handler = chat_engine()

    async def _answer(self, call: Call) -> None:
        await self._handler(call)
        if call.body:
            self._answered.set()

    async def __aenter__(self) -> asyncio.Event:
        await self._engine.__aenter__()
        return self._answered

    async def __aexit__(self, *error: object) -> None:
        await self._engine.__aexit__(None, None, None)


async def test_tags_take_a_prefix_and_the_last_progress_is_kept(
    gateway: Gateway, stop: asyncio.Event, tmp_path: Path
) -> None:
    tags: set[str] = set()
    answer = chat_engine(tokens=1)

    async def keep(call: Call) -> None:
        if call.body:
            tags.add(json.loads(call.body)["vllm_xargs"]["workload"])
        await answer(call)

    kept = tmp_path / "progress"
    async with fake_engine(gateway.upstream, keep):
        result = await run(
            _profile(0.5, 4), _base(gateway), on_progress=_narrator(kept), scale=1.0, stop=stop, tag_prefix="demo-"
        )
    assert tags == {f"demo-{workload}" for workload in WORKLOADS}
    last = msgspec.json.decode(kept.read_bytes(), type=Progress)
    assert (last.phase, last.done) == ("over", result.done)
    assert list(result.workloads) == list(WORKLOADS)
