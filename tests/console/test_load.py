"""The load generator of a rehearsal: open loop, one outcome for each request whatever the server does, latency from the
intended moment, its own lag told apart."""

from __future__ import annotations

import asyncio
import errno
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.rehearsing.load import exchange
from console.rehearsing.load.answer import Answer
from console.rehearsing.load.files import OutcomeFile
from console.rehearsing.load.sending import Sender
from console.rehearsing.load.target import resolved, target
from console.rehearsing.load.told import LoadProgress, Tally
from tests.console.fake_engine import Call, fake_server
from tests.console.load_cases import (
    HEAD,
    SPEAKER,
    USAGE,
    WHOLE,
    answer_whole,
    drawn,
    event,
    every,
    outcomes_in,
    sent,
    token,
)


def _raw(*pieces: bytes) -> Callable[[Call], Awaitable[None]]:
    async def answer(call: Call) -> None:
        for piece in pieces:
            await call.send(piece)

    return answer


def _chunks(*pieces: bytes) -> Callable[[Call], Awaitable[None]]:
    return _raw(HEAD, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n")


async def _hang(call: Call) -> None:
    await call.client_left()


async def _hang_in_the_middle(call: Call) -> None:
    await call.start_events()
    await call.chunk(token("a"))
    await call.client_left()


async def _die(call: Call) -> None:
    await call.start_events()
    await call.chunk(token("a"))
    call.die()


BEHAVIOURS: dict[str, tuple[str | None, Callable[[Call], Awaitable[None]]]] = {
    "answers": (None, answer_whole),
    "answers without lengths": (None, _raw(b"HTTP/1.1 200 OK\r\n\r\n", *WHOLE)),
    "answers and drops the end": (None, _raw(HEAD, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in WHOLE))),
    "is down": ("http 503", _raw(b'HTTP/1.1 503 No\r\ncontent-length: 28\r\n\r\n{"error":{"message":"down"}}')),
    "refuses and drops": ("http 400", _raw(b"HTTP/1.1 400 No\r\ncontent-length: 99\r\n\r\nhalf a ")),
    "closes": ("connection lost", _raw()),
    "closes in the head": ("connection lost", _raw(b"HTTP/1.1 200 OK\r\ncont")),
    "is not HTTP": ("connection lost", _raw(b"\x00\xff SSH-2.0 \r\n\r\n")),
    "cuts a chunk": ("connection lost", _raw(HEAD, b"ff\r\ndata: {")),
    "dies": ("connection lost", _die),
    "ends early": ("cut short", _chunks(SPEAKER, token("a"))),
    "sends no events": ("cut short", _raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")),
    "sends half an event": ("bad answer", _chunks(b"data: {half\n\n", USAGE, b"data: [DONE]\n\n")),
    "sends another form": ("bad answer", _chunks(b'data: {"choices": 7}\n\n')),
    "sends no text": ("bad answer", _chunks(b'data: {"id": "\xff"}\n\n')),
    "counts nothing": ("bad answer", _chunks(*WHOLE[:3], b"data: [DONE]\n\n")),
    "breaks off": ("error event", _chunks(token("a"), event(error={"message": "lost"}), b"data: [DONE]\n\n")),
    "hangs": ("timeout", _hang),
    "hangs in the middle": ("timeout", _hang_in_the_middle),
}


@settings(max_examples=12, deadline=None)
@given(names=st.lists(st.sampled_from(sorted(BEHAVIOURS)), max_size=25), pause=st.sampled_from([0.0, 0.001, 0.01]))
async def test_each_request_has_one_outcome_of_its_kind_whatever_the_server_does(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], pause: float
) -> None:
    await _met(tmp_path_factory, names, pause)


async def test_every_kind_of_trouble_is_told_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    await _met(tmp_path_factory, list(BEHAVIOURS), 0.0)


async def _met(paths: pytest.TempPathFactory, names: list[str], pause: float) -> None:
    async def answer(call: Call) -> None:
        number = int(call.body.split(b'"seed":')[1].split(b",")[0])
        await BEHAVIOURS[names[number]][1](call)

    async with fake_server(answer) as url:
        requests = every(pause, len(names))
        summary, outcomes = await sent(requests, url, paths.mktemp("load") / "outcomes", drain=0.2)
    found = {outcome.id: outcome for outcome in outcomes}
    assert len(outcomes) == len(found) == summary.requests == len(names)
    assert [found[f"r{number}"].error for number in range(len(names))] == [BEHAVIOURS[name][0] for name in names]
    assert summary.errors == sum(outcome.error is not None for outcome in outcomes)
    for outcome in outcomes:
        assert outcome.sent is not None
        if outcome.error is None:
            assert outcome.first_token is not None
            assert outcome.ended is not None
            assert outcome.at <= outcome.sent <= outcome.first_token <= outcome.ended
            assert (outcome.request, outcome.prompt_tokens, outcome.output_tokens) == ("chatcmpl-1", 7, 3)
        else:
            assert outcome.ended is None


async def test_without_a_server_each_request_is_unreachable(tmp_path: Path) -> None:
    async with fake_server(answer_whole) as url:
        pass
    summary, outcomes = await sent(every(0.01, 5), url, tmp_path / "outcomes")
    assert [outcome.error for outcome in outcomes] == ["unreachable"] * summary.requests == ["unreachable"] * 5
    assert outcomes[0].detail == "Connection refused"


async def test_a_limit_of_our_own_machine_is_not_put_down_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_more(*arguments: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(exchange, "_connect", no_more)
    async with fake_server(answer_whole) as url:
        _, (only,) = await sent([drawn(0, 0.0)], url, tmp_path / "outcomes")
    assert (only.error, only.detail) == ("own limit", "Too many open files")


@given(cuts=st.sets(st.integers(1, len(b"".join(WHOLE)) - 1)), ends=st.sampled_from([b"\n", b"\r\n"]))
def test_it_does_not_matter_where_a_stream_is_cut_into_pieces(cuts: set[int], ends: bytes) -> None:
    stream = b"".join(WHOLE).replace(b"\n", ends)
    answer = Answer()
    first = stream.index(b"\n", stream.index(b'"a"'))
    for begin, end in itertools.pairwise([0, *sorted(cuts), len(stream)]):
        answer.take(stream[begin:end], float(end))
    answer.end()
    assert (answer.error, answer.output_tokens, answer.request) == (None, 3, "chatcmpl-1")
    assert answer.first_token == min(end for end in [*cuts, len(stream)] if end > first)
    assert answer.ended is not None


def test_an_answer_of_a_stop_token_alone_has_its_first_token_at_its_end() -> None:
    answer = Answer()
    pieces = [SPEAKER, event(choices=[{"delta": {"content": ""}, "finish_reason": "stop"}]), *WHOLE[3:]]
    for moment, piece in enumerate(pieces):
        answer.take(piece, moment)
    assert (answer.first_token, answer.ended) == (1, 3)


async def test_no_request_waits_for_another(tmp_path: Path) -> None:
    many, waiting, go = 300, 0, asyncio.Event()

    async def hold(call: Call) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == many:
            go.set()  # only an open loop gets the last one here while the first is still unanswered
        await go.wait()
        await answer_whole(call)

    async with asyncio.timeout(20), fake_server(hold) as url:
        summary, _ = await sent(every(0.001, many), url, tmp_path / "outcomes")
    assert (summary.requests, summary.errors) == (many, 0)


async def test_a_server_that_stalls_delays_each_request_by_the_rest_of_the_stall(tmp_path: Path) -> None:
    began, stalled = None, (0.4, 1.4)

    async def stall(call: Call) -> None:
        nonlocal began
        if began is None:
            began = asyncio.get_running_loop().time()  # the first request is meant for moment 0
        now = asyncio.get_running_loop().time() - began
        if stalled[0] <= now < stalled[1]:
            await asyncio.sleep(stalled[1] - now)
        await answer_whole(call)

    async with fake_server(stall) as url:
        requests = every(0.05, 36)
        stalling, outcomes = await sent(requests, url, tmp_path / "stalling")
        _, plain = await sent(requests, url, tmp_path / "plain")
    latency = {outcome.id: (outcome.ended or 0.0) - outcome.at for outcome in outcomes}
    longest = max((outcome.ended or 0.0) - outcome.at for outcome in plain)
    assert max(latency.values()) - longest == pytest.approx(1.0, abs=0.2)
    for request in requests:
        if stalled[0] + 0.05 < request.at < stalled[1] - 0.05:
            assert latency[request.id] == pytest.approx(stalled[1] - request.at, abs=0.2)
    assert stalling.lag_max < 0.2


async def test_the_generators_own_lag_is_told_and_never_taken_out_of_a_latency(tmp_path: Path) -> None:
    told: list[LoadProgress] = []

    async def block_once(call: Call) -> None:
        if b'"seed":2,' in call.body:
            time.sleep(0.5)  # this loop is also the generator's
        await answer_whole(call)

    async with fake_server(block_once) as url:
        summary, outcomes = await sent(every(0.1, 12), url, tmp_path / "outcomes", told=told)
    late = [outcome for outcome in outcomes if (outcome.sent or 0.0) - outcome.at > 0.2]
    assert 2 <= len(late) <= 5
    assert all((outcome.ended or 0.0) - outcome.at > 0.2 for outcome in late)
    assert summary.lag_max == pytest.approx(0.4, abs=0.1)
    assert summary.late_max == pytest.approx(0.45, abs=0.1)
    assert any("the load generator itself was 0." in progress.note for progress in told)


async def test_a_loop_that_is_late_is_seen_when_no_request_is_due(tmp_path: Path) -> None:
    async def block(call: Call) -> None:
        time.sleep(0.3)
        await answer_whole(call)

    async with fake_server(block) as url:
        summary, _ = await sent([drawn(0, 0.0)], url, tmp_path / "outcomes")
    assert summary.lag_max < 0.1
    assert summary.late_max > 0.15


def test_lag_is_told_by_nearest_rank() -> None:
    tally = Tally()
    for hundredths in range(200):
        tally.began(hundredths / 100)
    summary = tally.summary(5.0, 2.0, 0.1)
    assert (summary.lag_p99, summary.lag_max, summary.start, summary.end) == (1.97, 1.99, 5.0, 7.0)
    assert Tally().summary(0.0, 0.0, 0.0).lag_max == 0.0


async def test_a_wall_clock_that_is_set_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = itertools.count()
    truth = time.time()
    monkeypatch.setattr(time, "time", lambda: truth + 3600.0 * next(steps))
    async with fake_server(answer_whole) as url:
        summary, outcomes = await sent(every(0.1, 4), url, tmp_path / "outcomes")
    assert summary.start == pytest.approx(truth, abs=0.5)
    assert summary.end - summary.start == pytest.approx(0.3, abs=0.15)
    assert all(outcome.at <= (outcome.ended or 0.0) < outcome.at + 0.2 for outcome in outcomes)


async def test_cancelled_it_closes_what_is_in_flight_and_keeps_it_as_cancelled(tmp_path: Path) -> None:
    here, gone = asyncio.Event(), asyncio.Event()

    async def hold(call: Call) -> None:
        here.set()
        await call.client_left()
        gone.set()

    async with asyncio.timeout(20), fake_server(hold) as url:
        with OutcomeFile(tmp_path / "outcomes") as outcomes:
            sender = Sender(await resolved(target(url)), outcomes.write, model="m")
            sending_them = asyncio.create_task(sender.send([drawn(0, 0.0), drawn(1, 60.0)], lambda told: None))
            await here.wait()
            sending_them.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending_them
        await gone.wait()
    (only,) = outcomes_in(tmp_path / "outcomes")
    assert (only.id, only.error, only.ended) == ("r0", "cancelled", None)


@pytest.mark.parametrize(
    ("given_url", "path"),
    [
        ("http://h:1", "/v1/chat/completions"),
        ("http://h:1/", "/v1/chat/completions"),
        ("http://h:1/v1/", "/v1/chat/completions"),
        ("http://h/openai/v1", "/openai/v1/chat/completions"),
    ],
)
def test_a_base_url_may_come_without_its_version(given_url: str, path: str) -> None:
    assert target(given_url).path == path


@pytest.mark.parametrize("wrong", ["localhost:8000", "https://h/v1", "http://:80/v1", "http://h:port/v1", "/v1"])
def test_what_is_no_base_url_is_named(wrong: str) -> None:
    with pytest.raises(ValueError, match=repr(wrong)[1:-1]):
        target(wrong)
