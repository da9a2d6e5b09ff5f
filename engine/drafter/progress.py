"""How far a stage is, in lines: amount, rate and time left. A line every few seconds, and one at the end."""

from __future__ import annotations

import time
from typing import Final

from engine.drafter.work import Narrate

SECONDS_BETWEEN_LINES: Final = 10.0


class Progress:
    def __init__(self, stage: str, unit: str, total: int, done: int, narrate: Narrate) -> None:
        """`done` of `total` units were done by an earlier run: they don't count for the rate."""
        self._stage, self._unit, self._total, self._done = stage, unit, total, done
        self._narrate = narrate
        self._start = self._spoken = time.monotonic()
        self._before = done

    def advance(self, units: int, remark: str = "") -> None:
        self._done += units
        now = time.monotonic()
        if now - self._spoken >= SECONDS_BETWEEN_LINES or self._done >= self._total:
            self._spoken = now
            self._narrate(self._line(now - self._start, remark))

    def _line(self, seconds: float, remark: str) -> str:
        fresh = self._done - self._before
        left = (self._total - self._done) * seconds / fresh if fresh else 0.0
        text = f"{self._stage}: {self._done:,} of {self._total:,} {self._unit}, {duration(left)} left"
        return f"{text}; {remark}" if remark else text


def duration(seconds: float) -> str:
    """`42 s`, `13 min`, `2 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
