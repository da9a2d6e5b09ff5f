"""Prompts and answers in the gateway: kept only while they are asked for, in bounds, whatever a body holds."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.feed.texts import Texts
from console.gateway import text_tap, texts
from console.gateway.asked_text import Unread, prompt_of
from console.gateway.control import Control
from console.gateway.lanes import Lanes
from console.gateway.texts import TextKeeper
from engine.records import Passage, TextRecord
from tests.console.fake_engine import Call, fake_engine
from tests.console.gateway_process import running_gateway
from tests.console.raw_client import raw_client

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
JSON, EVENTS = [(b"content-type", b"application/json")], [(b"content-type", b"text/event-stream; charset=utf-8")]


def asking(after: int = 0, *, end: bool = False, recording: str = "mine") -> dict[str, Any]:
    return {"recording": recording, "after": after, "end": end, "engine": "e0", "vanilla_engine": "v0"}


def chat(*contents: Any, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": content} for content in contents]
    return json.dumps({"messages": messages, **fields}).encode()


def answered(text: str = "fine", number: str = "chatcmpl-1") -> bytes:
    return json.dumps({"id": number, "choices": [{"index": 0, "message": {"content": text}}]}).encode()


def events(*deltas: dict[str, Any], number: str = "chatcmpl-1", done: bool = True) -> bytes:
    lines = [json.dumps({"id": number, "choices": [{"index": d.pop("at", 0), "delta": d}]}) for d in deltas]
    return b"".join(b"data: %b\n\n" % line.encode() for line in lines) + (b"data: [DONE]\n\n" if done else b"")


def exchange(
    keeper: TextKeeper, body: bytes, *pieces: bytes, headers: Any = JSON, status: int = 200, path: str = CHAT
) -> None:
    tap = keeper.tap(path, body, vanilla=False)
    if tap is not None:
        tap.begin(status, headers)
        for piece in pieces:
            tap.take(piece)
        tap.end()


def kept(keeper: TextKeeper, after: int = 0) -> list[TextRecord]:
    return keeper.reply(asking(after)).texts


def said(passages: Iterable[Passage]) -> list[tuple[str, str | None, int]]:
    return [(one.text, one.role, one.number) for one in passages]


@pytest.fixture
async def keeper() -> TextKeeper:
    made = TextKeeper()
    made.reply(asking())
    return made


async def test_nothing_is_kept_that_nobody_asked_for() -> None:
    keeper = TextKeeper()
    exchange(keeper, chat("secret"), answered("secret"))
    assert keeper.tap(CHAT, chat("secret"), vanilla=False) is None
    assert kept(keeper) == [], "not even afterwards"


async def test_a_whole_answer_is_kept_with_the_id_that_the_client_got(keeper: TextKeeper) -> None:
    exchange(keeper, chat("what?", [{"type": "text", "text": "and"}, {"type": "image_url"}, "why"]), answered("so"))
    (text,) = kept(keeper)
    assert (text.engine, text.request, text.missing) == ("e0", "chatcmpl-1", None)
    assert said(text.prompt) == [("what?", "user", 0), ("and\n[image]\nwhy", "user", 0)]
    assert said(text.output) == [("so", None, 0)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 700), max_size=12))
def test_a_stream_is_kept_as_it_was_said_wherever_it_is_torn(cuts: list[int]) -> None:
    call = [{"index": 0, "function": {"name": "look", "arguments": ""}}]
    stream = events(
        {"role": "assistant", "content": ""}, {"reasoning": "hm"}, {"content": "Grüße"}, {"content": "other", "at": 1},
        {"content": " 🙂"}, {"tool_calls": call}, {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ).replace(b"\n\ndata", b"\r\n\r\ndata", 1)  # fmt: skip
    places = [0, *sorted(cuts), len(stream)]

    async def go() -> list[TextRecord]:
        keeper = TextKeeper()
        keeper.reply(asking())
        pieces = [stream[a:b] for a, b in itertools.pairwise(places)]
        exchange(keeper, chat("hi", stream=True), *pieces, headers=EVENTS)
        return kept(keeper)

    (text,) = asyncio.run(go())
    assert said(text.output) == [
        ("hm", "reasoning", 0), ("Grüße 🙂", None, 0), ("look {}", "tool call", 0), ("other", None, 1)
    ]  # fmt: skip
    assert text.missing is None


async def test_completions_keep_each_prompt_and_choice(keeper: TextKeeper) -> None:
    body = json.dumps({"prompt": ["one", [1, 2, 3]], "n": 1}).encode()
    answer = json.dumps({"id": "cmpl-7", "choices": [{"index": 1, "text": "b"}, {"index": 0, "text": "a"}]}).encode()
    exchange(keeper, body, answer, path=COMPLETIONS)
    (text,) = kept(keeper)
    assert said(text.prompt) == [("one", None, 0), ("[3 token ids]", None, 1)]
    assert said(text.output) == [("a", None, 0), ("b", None, 1)]


async def test_what_arrived_is_dropped_and_what_did_not_is_handed_over_again(keeper: TextKeeper) -> None:
    for number in ("a", "b"):
        exchange(keeper, chat("hi"), answered(number=number))
    assert [text.request for text in kept(keeper)] == ["a", "b"]
    assert [text.request for text in kept(keeper, after=0)] == ["a", "b"], "the answer may have been lost"
    exchange(keeper, chat("hi"), answered(number="c"))
    assert [text.request for text in kept(keeper, after=2)] == ["c"]
    assert kept(keeper, after=3) == []


async def test_what_is_too_much_for_one_answer_comes_in_several(
    keeper: TextKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MOST_HANDED", 50)
    for number in range(5):
        exchange(keeper, chat("x" * 15), answered("y" * 15, f"n{number}"))
    found, last, more = [], 0, True
    while more:
        answer = keeper.reply(asking(last))
        assert len(answer.texts) == 1
        found += [text.request for text in answer.texts]
        last, more = answer.last, answer.more
    assert found == ["n0", "n1", "n2", "n3", "n4"]


async def test_all_of_it_is_dropped_when_nobody_asks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LEASE_SECONDS", 0.05)
    keeper = TextKeeper()
    before = keeper.reply(asking())
    exchange(keeper, chat("secret"), answered())
    running = keeper.tap(CHAT, chat("secret"), vanilla=False)
    assert running is not None
    running.begin(200, EVENTS)
    async with asyncio.timeout(5):
        while keeper.wanted:
            await asyncio.sleep(0.01)
    running.take(events({"content": "secret"}))
    running.end()
    assert "secret" not in repr([vars(running), vars(keeper)])
    again = keeper.reply(asking(7))
    assert (again.texts, again.last) == ([], 7)
    assert again.since > before.since, "so that whoever records knows that something is missing"


async def test_the_end_hands_over_what_is_on_its_way_as_far_as_it_came(keeper: TextKeeper) -> None:
    running, early = (keeper.tap(CHAT, chat("hi"), vanilla=True) for _ in range(2))
    assert running is not None
    assert early is not None
    running.begin(200, EVENTS)
    running.take(events({"content": "half"}, done=False))
    answer = keeper.reply(asking(end=True))
    (text,) = answer.texts
    assert (text.engine, text.missing) == ("v0", "the recording ended before the answer did")
    assert said(text.output) == [("half", None, 0)]
    assert answer.left_out == {text_tap.NO_ANSWER: 1}
    assert keeper.tap(CHAT, chat("late"), vanilla=False) is None
    assert keeper.reply(asking(1, end=True)).texts == []
    assert keeper.reply(asking(recording="another's")).error is None, "it has ended at once"


async def test_one_recording_at_a_time(keeper: TextKeeper) -> None:
    exchange(keeper, chat("mine"), answered())
    other = keeper.reply(asking(recording="another's"))
    assert other.error is not None
    assert "already" in other.error
    assert other.texts == []
    assert len(kept(keeper)) == 1


async def test_an_answer_that_breaks_off_says_so_and_a_refused_request_has_no_text(keeper: TextKeeper) -> None:
    exchange(keeper, chat("hi"), events({"content": "ha"}, done=False), headers=EVENTS)
    exchange(keeper, chat("hi"), b'{"error": {"message": "no"}}', status=400)
    (text,) = kept(keeper)
    assert text.missing == "the answer ended before its last event"
    assert keeper.reply(asking()).left_out == {}


async def test_memory_is_bounded_and_what_is_left_out_is_counted(
    keeper: TextKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MOST_HELD", 1000)
    monkeypatch.setattr(text_tap, "MOST_TEXT", 300)
    monkeypatch.setattr(texts, "MOST_BODY", 5000)
    exchange(keeper, chat("p" * 400), events({"content": "a" * 250}, {"content": "b" * 250}), headers=EVENTS)
    exchange(keeper, chat("q" * 200), events(*[{"content": "c" * 100}] * 3, number="big"), headers=EVENTS)
    exchange(keeper, chat("r" * 6000), answered())
    exchange(keeper, chat("hi"), answered(), path="/v1/messages")
    answer = keeper.reply(asking())
    (text,) = answer.texts
    assert text.missing == "the prompt is cut after about 300 characters; the answer is cut after 300 characters"
    assert [len("".join(one.text for one in side)) for side in (text.prompt, text.output)] == [200, 300]
    assert answer.left_out == {
        text_tap.NO_ROOM: 1, "of more than 0 MiB": 1, "sent to /v1/messages, whose form is not read": 1
    }  # fmt: skip
    kept(keeper, after=1)
    exchange(keeper, chat("q" * 200), answered("c" * 100))
    assert len(kept(keeper, after=1)) == 1, "there is room again"


async def test_a_million_empty_messages_take_no_memory_either(keeper: TextKeeper) -> None:
    exchange(keeper, b'{"messages": [%b{}]}' % (b"{}," * 1_000_000), answered())
    (text,) = kept(keeper)
    assert len(text.prompt) <= text_tap.MOST_TEXT / 100
    assert "the prompt is cut" in (text.missing or "")


HOSTILE: Sequence[bytes] = [
    b"", b"{", b"null", b"[1]", b"\xff\xfe{", b'{"messages": 3}', b'{"messages": []}', b'{"messages": [3]}',
    b'{"messages": [{"content": {"a": 1}}]}', b'{"messages": [{"content": [[1]]}]}', b"[" * 100_000,
    b'{"messages": ' + b"[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_body_of_unknown_form_is_skipped_and_counted(keeper: TextKeeper, body: bytes) -> None:
    with pytest.raises(Unread):
        list(prompt_of(CHAT, body))
    exchange(keeper, body, answered())
    answer = keeper.reply(asking())
    assert (answer.texts, answer.left_out) == ([], {text_tap.UNREAD: 1})


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        (JSON, b"{"),
        (JSON, b'{"id": 3}'),
        (EVENTS, b'data: {"choices": 3}\n\n'),
        (EVENTS, b'data: {"id": "x", "choices": [{"delta": {"content": "\\ud800"}}]}\n\n'),
        ([*JSON, (b"content-encoding", b"gzip")], b"\x1f\x8b"),
        ([(b"content-type", b"audio/wav")], b"RIFF"),
    ],
    ids=["broken", "kind", "choices", "surrogate", "packed", "audio"],
)
async def test_an_answer_of_unknown_form_is_skipped_and_counted(
    keeper: TextKeeper, headers: Any, answer: bytes
) -> None:
    exchange(keeper, chat("hi"), answer, headers=headers)
    assert keeper.reply(asking()).left_out == {text_tap.UNREAD: 1}


async def test_half_a_surrogate_pair_can_be_written(keeper: TextKeeper) -> None:
    exchange(keeper, b'{"messages": [{"role": "\\ud800", "content": "a\\ud83d\\ude42b\\udc00"}]}', answered())
    (text,) = msgspec.json.decode(msgspec.json.encode(keeper.reply(asking())), type=Texts).texts
    assert said(text.prompt) == [("a🙂b�", "�", 0)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "tool_calls", "function"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(json_values, st.sampled_from([CHAT, COMPLETIONS]), json_values, st.booleans())
def test_no_body_and_no_answer_does_any_harm(asked: Any, path: str, choices: Any, streamed: bool) -> None:
    async def go() -> None:
        keeper = TextKeeper()
        control = Control(dict, Lanes(), keeper)
        control.reply(msgspec.json.encode({"texts": asking()}))
        answer = json.dumps({"id": "x", "choices": choices}).encode()
        body = json.dumps({"messages": asked, "prompt": asked}).encode()
        exchange(keeper, body, b"data: %b\n\n" % answer if streamed else answer, headers=EVENTS if streamed else JSON)
        found = msgspec.json.decode(control.reply(msgspec.json.encode({"texts": asking()})), type=Texts)
        assert found.error is None
        assert len(found.texts) + sum(found.left_out.values()) == 1

    asyncio.run(go())


async def test_a_client_that_leaves_gets_what_it_had_and_the_key_is_in_nothing() -> None:
    got = asyncio.Event()

    async def engine(call: Call) -> None:
        if b"stream" not in call.body:
            await call.respond(answered("whole", "chatcmpl-w"), headers=(b"content-type: application/json",))
            return
        await call.start_events()
        await call.chunk(events({"content": "so far"}, number="chatcmpl-s", done=False))
        await got.wait()
        await call.client_left()

    with running_gateway() as gateway:
        assert (await asyncio.to_thread(gateway.ask, {"texts": asking()}))["texts"] == []
        async with fake_engine(gateway.upstream, engine):
            async with httpx.AsyncClient(base_url=gateway.url) as client:
                headers = {"authorization": "Bearer sk-of-a-client", "content-type": "application/json"}
                await client.post(CHAT, content=chat("first"), headers=headers)
            async with raw_client(gateway.port) as leaving:
                await leaving.post(chat("second", stream=True), b"content-type: application/json")
                await leaving.read_head()
                await leaving.read_chunk()
            got.set()
            async with asyncio.timeout(10):
                while len((answer := await asyncio.to_thread(gateway.ask, {"texts": asking()}))["texts"]) < 2:
                    await asyncio.sleep(0.02)
        whole, cut = answer["texts"]
        assert (whole["request"], whole["missing"]) == ("chatcmpl-w", None)
        assert (cut["request"], cut["missing"]) == ("chatcmpl-s", "the client left before the answer was complete")
        assert cut["output"] == [{"text": "so far"}]
        assert "sk-of-a-client" not in json.dumps(answer)
        gateway.process.terminate()
        await asyncio.to_thread(gateway.process.wait)
        assert gateway.process.stderr is not None
        log = gateway.process.stderr.read()
        assert "first" not in log
        assert "whole" not in log
        assert "are kept for a recording" in log, "that it happened is in the log"
