"""So many requests at once, each stream sending its next when the last has ended. The number may change meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from console.traffic.client import Server
from console.traffic.plan import Planned
from console.traffic.prompts import MAX_TOKENS, TEMPERATURE, Workload, prompts

Requests = Callable[[int], Iterator[Planned]]
"""The requests of a stream, given its place from 0 on, without an end."""


class Streams:
    """Use as a context: on leaving, what is under way is waited for.

    Raises:
        AssertionError: on leaving, when a request was not answered.
    """

    def __init__(self, url: str, requests: Requests) -> None:
        self._server = Server(f"{url}/v1")
        self._requests = requests
        self._wanted = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._errors: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        model = await self._server.first_model()
        assert isinstance(model, str), model
        self._model = model
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wanted = 0
        await asyncio.gather(*self._tasks.values())
        await self._server.close()
        assert not self._errors, f"requests failed: {dict(self._errors)}"

    async def hold(self, many: int, seconds: float) -> None:
        """Let `many` streams run for so long. Those that are too many end with their present answer."""
        self._wanted = many
        for place in range(many):
            if place not in self._tasks or self._tasks[place].done():
                self._tasks[place] = asyncio.create_task(self._send(place))
        await asyncio.sleep(seconds)

    async def _send(self, place: int) -> None:
        for request in self._requests(place):
            if place >= self._wanted:
                return
            outcome = await self._server.send(request, self._model)
            if outcome.error is not None:
                self._errors[f"{outcome.error}: {outcome.detail}"] += 1
                await asyncio.sleep(1.0)


def in_turn(workloads: Sequence[Workload], *, most_tokens: int | None = None) -> Requests:
    """The demo's prompts, one workload after the other, each stream beginning with another one.

    Args:
        most_tokens: of an answer; None leaves the lengths as the demo has them.
    """

    def requests(place: int) -> Iterator[Planned]:
        source = random.Random(place)
        for workload in itertools.islice(itertools.cycle(workloads), place, None):
            prompt, tokens = source.choice(prompts(workload)), source.choice(MAX_TOKENS[workload])
            tokens = tokens if most_tokens is None else min(tokens, most_tokens)
            yield Planned(0.0, workload, prompt, tokens, TEMPERATURE[workload], stream=True)

    return requests
