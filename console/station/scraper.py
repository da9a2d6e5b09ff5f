"""Observes a vLLM that somebody else runs: reads its /metrics by the clock and hands on what was counted in between.

A look that fails loses nothing: counters go on, and the next look tells what was counted meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import httpx

from console.station.engines import LOST_AFTER_SECONDS
from console.station.events import Condition
from console.station.recorder import Note
from console.station.scrape_address import SCRAPE_SECONDS, Address
from console.station.scrape_look import ScrapeFailed, asking, look
from store.imports.observations import CounterDifferences, CounterSample, Observation

WINDOW_SECONDS: Final = 300.0
"""What the live figures are of."""
FORGET_AFTER_SECONDS: Final = 600.0
"""An engine that good answers no longer show is forgotten then."""
NOTES_LIMIT: Final = 200
"""Notes of one station that are stored; a server that restarts without end must not fill the reports."""

LIMITS_OF_VIEW: Final = "observed by its /metrics: pooled counters only; no executed K, no buckets, no per-step α"


class Failing(NamedTuple):
    """The present stretch of failed looks: since when, and why the last one failed."""

    since: float
    reason: str


class Seen(NamedTuple):
    """An engine as the last good look showed it."""

    sample: CounterSample
    restarts: int


class Scraper:
    """One address, looked at for ever, on the event loop; what takes long is done beside it.

    Args:
        put: takes what is to be stored. Must not block.
        tell: takes the kind and the text of what an operator should hear of.
        every: seconds from look to look.
    """

    def __init__(
        self,
        address: Address,
        put: Callable[[Observation | Note], None],
        tell: Callable[[str, str], None],
        every: float = SCRAPE_SECONDS,
    ) -> None:
        self.shown = address.shown
        self.failing: Failing | None = None
        self.engines: dict[str, Seen] = {}
        self._address = address
        self._put = put
        self._tell = tell
        self._every = every
        self._differences = CounterDifferences()
        self._recent: deque[Observation] = deque()
        self._notes = 0

    async def run(self) -> None:
        """For ever."""
        async with asking(self._address) as client:
            due = time.monotonic()
            while True:
                await self.look(client)
                due = max(due + self._every, time.monotonic())
                await asyncio.sleep(due - time.monotonic())

    async def look(self, client: httpx.AsyncClient) -> None:
        """Ask once. A failure is kept and told, not raised."""
        try:
            samples = await look(client, self._address, self.engines.keys())
        except ScrapeFailed as error:
            self._failed(str(error), time.time())
        else:
            self._took(samples)

    def recent(self, now: float) -> list[Observation]:
        """What was counted in stretches that ended in the last `WINDOW_SECONDS`."""
        return [observation for observation in self._recent if observation.ts > now - WINDOW_SECONDS]

    def lost(self, seen: Seen, now: float) -> bool:
        """Whether nothing has been heard of an engine for more than two looks."""
        return now - seen.sample.ts > max(LOST_AFTER_SECONDS, 2.5 * self._every)

    def trouble(self, seen: Seen, now: float) -> str | None:
        """Why an engine can't be seen now, if it can't."""
        if self.failing is not None:
            return self.failing.reason
        return f"no longer in what {self.shown} answers" if self.lost(seen, now) else None

    def conditions(self, now: float) -> list[Condition]:
        """What is wrong now. One look that failed is a warning; it is grave once no engine was seen for longer."""
        if self.failing is not None:
            grave = all(self.lost(seen, now) for seen in self.engines.values())
            return [Condition("scrape", "engine_down", "critical" if grave else "warn", self.failing.reason)]
        return [
            Condition(f"down {engine}", "engine_down", "critical", f"engine {engine}: {self.trouble(seen, now)}")
            for engine, seen in self.engines.items()
            if self.lost(seen, now)
        ]

    def _failed(self, reason: str, now: float) -> None:
        if self.failing is None:
            self._tell("scrape", f"{reason}; tried again every {self._every:g} s")
        self.failing = Failing(self.failing.since if self.failing is not None else now, reason)

    def _took(self, samples: Sequence[CounterSample]) -> None:
        now = samples[0].ts
        if self.failing is not None:
            self._tell("scrape", f"{self.shown} answers again, after {max(0.0, now - self.failing.since):.0f} s")
            self.failing = None
        for sample in samples:
            if sample.engine not in self.engines:
                self._meet(sample)
        found = self._differences.take(samples)
        for note in found.notes:
            self._note(note)
        for observation in found.observations:
            self._put(observation)
        self._recent.extend(found.observations)
        while self._recent and self._recent[0].ts <= now - WINDOW_SECONDS:
            self._recent.popleft()
        self._remember(samples, {observation.engine for observation in found.observations if observation.restarted})

    def _remember(self, samples: Sequence[CounterSample], restarted: set[str]) -> None:
        for sample in samples:
            before = self.engines.get(sample.engine)
            restarts = (before.restarts if before is not None else 0) + (sample.engine in restarted)
            self.engines[sample.engine] = Seen(sample, restarts)
        for engine, seen in list(self.engines.items()):
            if samples[0].ts - seen.sample.ts > FORGET_AFTER_SECONDS:
                del self.engines[engine]
                self._tell("scrape", f"{engine} is no longer in what {self.shown} answers: forgotten")

    def _meet(self, sample: CounterSample) -> None:
        self._tell("scrape", f"{sample.engine} at {self.shown} is {LIMITS_OF_VIEW}")
        if not sample.speculative:
            self._note(f"{sample.engine} shows no draft counters: it runs without speculation")

    def _note(self, text: str) -> None:
        self._tell("scrape", text)
        self._notes += 1
        if self._notes <= NOTES_LIMIT:
            self._put(Note(text))
        elif self._notes == NOTES_LIMIT + 1:
            self._put(Note(f"what else there is to note of {self.shown} is in the station's log only"))
