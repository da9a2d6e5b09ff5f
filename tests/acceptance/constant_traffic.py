"""Traffic of constant concurrency: so many streams at once, each sending its next request when the last has ended.

With as many streams as workloads or more each stream keeps to one workload, so that the mix of a step never changes.
Fewer go through the workloads in turn.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from console.traffic.client import Server
from console.traffic.plan import Planned
from console.traffic.prompts import MAX_TOKENS, TEMPERATURE, WORKLOADS, Workload, prompts


class ConstantTraffic:
    """Use as a context: on leaving, what is under way is cut off."""

    def __init__(self, server: Server, model: str, streams: int) -> None:
        self._server = server
        self._model = model
        self._many = streams
        self._tasks: list[asyncio.Task[None]] = []
        self._turned = asyncio.Event()
        self.errors: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        await self.begin_again("")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._cut()

    async def begin_again(self, seed: str) -> None:
        """Cut off what is under way and begin with what this seed gives: equal seeds, equal requests."""
        await self._cut()
        self._turned.clear()
        self._tasks = [
            asyncio.create_task(self._send(place, _workloads(place, self._many), random.Random(f"{seed} {place}")))
            for place in range(self._many)
        ]

    async def turn(self) -> None:
        """Wait until a single stream has gone through all workloads once more."""
        self._turned.clear()
        await self._turned.wait()

    async def _cut(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, place: int, workloads: tuple[Workload, ...], source: random.Random) -> None:
        for sent, request in enumerate(_requests(workloads, source), start=1):
            outcome = await self._server.send(request, self._model)
            if outcome.error is not None:
                self.errors[outcome.error] += 1
                await asyncio.sleep(1.0)
            if sent % len(workloads) == 0:
                self._turned.set()


def _workloads(place: int, streams: int) -> tuple[Workload, ...]:
    """Those of one stream."""
    if streams < len(WORKLOADS):
        return WORKLOADS[place:] + WORKLOADS[:place]
    return (WORKLOADS[place % len(WORKLOADS)],)


def _requests(workloads: tuple[Workload, ...], source: random.Random) -> Iterator[Planned]:
    """Without an end. The first answers of streams that keep to one workload are cut to different lengths, so that
    streams which begin together do not end together."""
    share = 1.0 if len(workloads) > 1 else source.uniform(0.3, 1.0)
    while True:
        decks = {workload: source.sample(prompts(workload), len(prompts(workload))) for workload in workloads}
        for cards in zip(*decks.values(), strict=False):
            for workload, prompt in zip(decks, cards, strict=True):
                tokens = round(share * source.choice(MAX_TOKENS[workload]))
                yield Planned(0.0, workload, prompt, tokens, TEMPERATURE[workload], stream=True)
                share = 1.0
