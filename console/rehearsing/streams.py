"""A number of streaming requests at once that can be raised and lowered; each that ends is followed by another."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from types import TracebackType
from typing import Final, Self

from console.rehearsing.client import NotServed, PublicPort
from console.traffic.prompts import prompts

_LONGEST: Final = 2048
_WITHOUT_LIMIT: Final = 512
_ROOM_FOR_PROMPT: Final = 128


def answer_tokens(max_model_len: int | None) -> int:
    """How long each answer is to be, tokens: long, so that few end while a level is held."""
    if max_model_len is None:
        return _WITHOUT_LIMIT
    return max(16, min(_LONGEST, max_model_len - _ROOM_FOR_PROMPT))


class Streams:
    """An asynchronous context: leaving it ends all of them."""

    def __init__(self, port: PublicPort, workload: str, tokens: int) -> None:
        self._port = port
        self._workload = workload
        self._tokens = tokens
        self._prompts = itertools.cycle(prompt[-1].content for prompt in prompts("creative"))
        self._running: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.be(0)

    async def be(self, wanted: int) -> None:
        """Have `wanted` of them: new ones begin, the newest are left."""
        while len(self._running) < wanted:
            self._running.append(asyncio.create_task(self._stream()))
        leaving, self._running = self._running[wanted:], self._running[:wanted]
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)

    def check(self) -> None:
        """Raises NotServed: one of them was not answered."""
        for task in self._running:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error if isinstance(error, NotServed) else NotServed(f"a request failed: {error!r}")

    async def _stream(self) -> None:
        while True:
            async with aclosing(self._port.stream(next(self._prompts), self._tokens, self._workload)) as pieces:
                async for _ in pieces:
                    pass
