"""A feed in memory: gives out the snapshots it is handed and keeps what it was asked. No sockets, no clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec
import scenes

from console.feed.client import FeedError, Update
from console.feed.protocol import LogChunk, Method, PolicyResult
from engine.records import PolicyMode

Result = TypeVar("Result")


class MemoryFeed:
    """A `console.feed.client.Feed`. `refusal`: what every action is answered with, if anything."""

    def __init__(self, *updates: Update) -> None:
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        for update in updates:
            self._updates.put_nowait(update)
        self.asked: list[tuple[str, Any]] = []
        self.refusal: FeedError | None = None

    def say(self, update: Update) -> None:
        self._updates.put_nowait(update)

    def actions(self, method: str) -> list[Any]:
        return [params for asked, params in self.asked if asked == method]

    async def snapshots(self) -> AsyncGenerator[Update, None]:
        while True:
            yield await self._updates.get()

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        built = msgspec.to_builtins(params) if params is not None else {}
        self.asked.append((method, built))
        if method == "series":
            answer: Any = scenes.series(scenes.BucketKey(*built["key"]), built["points"], built["seconds"])
        elif method == "engine_log":
            begun = built["offset"] < 0
            answer = LogChunk("~/.local/share/specdeck/logs/e0.log", scenes.LOG if begun else "", len(scenes.LOG))
        elif self.refusal is not None:
            raise self.refusal
        elif method == "policy_set":
            answer = PolicyResult(4, PolicyMode(**built["policy"]))
        else:
            answer = None
        return answer  # type: ignore[no-any-return]
