"""Requests and scripted answers for the tests of the load generator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from console.rehearsing.load.files import OutcomeFile
from console.rehearsing.load.sending import Sender
from console.rehearsing.load.target import resolved, target
from console.rehearsing.load.told import LoadProgress, LoadSummary
from store.rehearsal.records import DrawnRequest, Message, Outcome
from tests.console.fake_engine import Call

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def drawn(number: int, at: float, **changed: object) -> DrawnRequest:
    fields = {"phase": 0, "workload": "code", "max_tokens": 3, "temperature": 0.0, "seed": number}
    return DrawnRequest(
        id=f"r{number}", at=at, messages=(Message("user", "say ä"),), **(fields | changed)  # type: ignore[arg-type]
    )  # fmt: skip


def every(seconds: float, many: int) -> list[DrawnRequest]:
    return [drawn(number, number * seconds) for number in range(many)]


def written(path: Path, requests: Iterable[DrawnRequest]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(request) + b"\n" for request in requests))
    return path


def outcomes_in(path: Path) -> list[Outcome]:
    return [msgspec.json.decode(line, type=Outcome) for line in path.read_bytes().splitlines()]


def event(**fields: object) -> bytes:
    return b"data: " + json.dumps({"id": "chatcmpl-1", "choices": [], **fields}).encode() + b"\n\n"


def token(text: str) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": None}])


USAGE = event(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
SPEAKER = event(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}])
WHOLE = [SPEAKER, token("a"), token("b"), USAGE, b"data: [DONE]\n\n"]


async def answer_whole(call: Call, pause: float = 0.0) -> None:
    await call.start_events()
    for piece in WHOLE:
        await call.chunk(piece)
        await asyncio.sleep(pause)
    await call.end_chunks()


async def sent(
    requests: list[DrawnRequest],
    url: str,
    path: Path,
    *,
    drain: float = 20.0,
    told: list[LoadProgress] | None = None,
) -> tuple[LoadSummary, list[Outcome]]:
    """All of them from this process."""
    with OutcomeFile(path) as outcomes:
        sender = Sender(await resolved(target(url)), outcomes.write, model="m", tag_prefix="t/", drain_seconds=drain)
        summary = await sender.send(requests, (told if told is not None else []).append)
    return summary, outcomes_in(path)
