"""What stations and replays really said, kept in `recorded/`, and a feed that says it again.

`python -m tests.console.recording` makes the files anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import zstandard

from console.feed.client import FeedError, Update
from console.feed.messages import Snapshot
from console.feed.protocol import Method

FOLDER = Path(__file__).with_name("recorded")

Result = TypeVar("Result")


class Answer(msgspec.Struct, frozen=True):
    """`result`, or why it was refused: `[code, message]`."""

    method: str
    params: dict[str, Any]
    result: msgspec.Raw = msgspec.Raw(b"null")
    refused: tuple[str, str] | None = None


class Recorded(msgspec.Struct, frozen=True):
    """A picture, and what was answered to the screens that drew it."""

    snapshot: Snapshot
    answers: list[Answer] = []


@cache
def recorded(name: str) -> Recorded:
    packed = (FOLDER / f"{name}.json.zst").read_bytes()
    return msgspec.json.decode(zstandard.ZstdDecompressor().decompress(packed), type=Recorded)


def keep(name: str, said: Recorded) -> int:
    """Write it; its size in bytes."""
    packed = zstandard.ZstdCompressor(level=19).compress(msgspec.json.encode(said))
    FOLDER.mkdir(exist_ok=True)
    return (FOLDER / f"{name}.json.zst").write_bytes(packed)


class RecordedFeed:
    """A `console.feed.client.Feed`. What was never asked is answered as by a station that lacks the method; a question
    of the same kind about the same bucket counts as the same."""

    def __init__(self, *updates: Update, answers: list[Answer] | None = None) -> None:
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        for update in updates:
            self._updates.put_nowait(update)
        self._answers = answers or []
        self._waiting = False
        self._open = 0
        self.refusal: FeedError | None = None
        """What every question is answered with, if anything."""

    @property
    def at_rest(self) -> bool:
        """All that was said was drawn, and no question is open."""
        return self._updates.empty() and self._waiting and not self._open

    def say(self, update: Update) -> None:
        self._updates.put_nowait(update)

    async def snapshots(self) -> AsyncGenerator[Update, None]:
        while True:
            self._waiting = True
            update = await self._updates.get()
            self._waiting = False
            yield update

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        self._open += 1
        try:
            await asyncio.sleep(0)  # an answer never comes at once
            return self._answer(method, _plain(params), result_type)
        finally:
            self._open -= 1

    def _answer(self, method: str, params: dict[str, Any], result_type: type[Result]) -> Result:
        if self.refusal is not None:
            raise self.refusal
        alike = [one for one in self._answers if one.method == method]
        found = sorted(alike, key=lambda one: (one.params != params, one.params.get("key") != params.get("key")))
        if not found:
            raise FeedError("unknown_method", f"this station does not know {method}")
        if found[0].refused is not None:
            code, message = found[0].refused
            raise FeedError(code, message)  # type: ignore[arg-type]
        said = msgspec.json.decode(found[0].result)
        if method == "engine_log" and params["offset"] == said["offset"]:
            said["text"] = ""  # it was told before, and no more was written
        return msgspec.convert(said, type=result_type)


def _plain(params: msgspec.Struct | None) -> dict[str, Any]:
    plain: dict[str, Any] = {} if params is None else msgspec.json.decode(msgspec.json.encode(params))
    return plain
