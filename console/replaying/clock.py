"""The virtual clock of a replay: where in the record it stands, and how it moves on. Pure; wall time is passed in."""

from __future__ import annotations

import math
from typing import Final

SLOWEST: Final = 0.1
FASTEST: Final = 1000.0
"""Seconds of record a second; beyond it there is only as fast as it goes."""


class ClockError(ValueError):
    """Something that no clock can do: names the value and what it may be."""


class Clock:
    """Never outside [start, end], nor outside its loop while it has one. Times of the record are Unix seconds; `wall`
    is any clock that only goes on, in seconds.

    Args:
        complete: whether `end` is the end; until then it grows, and a clock that has come to it waits there.
    """

    def __init__(self, start: float, end: float, *, complete: bool = True) -> None:
        self.start = start
        self.end = max(start, end)
        self.complete = complete
        self.ts = start
        self.playing = False
        self.speed: float | None = 1.0
        """Seconds of record a second; None: as fast as it goes, by `move`."""
        self.loop: tuple[float, float] | None = None
        self._wall: float | None = None

    def tick(self, wall: float) -> float:
        """Let the time since the last tick pass; where it stands then."""
        passed = 0.0 if self._wall is None else max(0.0, wall - self._wall)
        self._wall = wall
        if self.playing and self.speed is not None:
            self.move(passed * self.speed)
        return self.ts

    def move(self, seconds: float) -> None:
        """Go on by `seconds` of record: round in a loop, and not beyond the end, where a complete record stops it."""
        target = self.ts + max(0.0, seconds)
        if self.loop is not None:
            first, last = self.loop
            if target >= last and target > self.ts:  # a clock that was set to the end of its loop shows it first
                target = first + (target - last) % (last - first)
            self.ts = min(max(target, first), last)  # the sum may be off by its last digit
            return
        self.ts = min(target, self.end)
        if self.complete and self.ts >= self.end:
            self.playing = False

    def play(self, wall: float) -> None:
        """From where it stands; from the start again where it stopped at the end."""
        self.tick(wall)
        if self.complete and self.loop is None and self.ts >= self.end:
            self.ts = self.start
        self.playing = True

    def pause(self, wall: float) -> None:
        self.tick(wall)
        self.playing = False

    def seek(self, ts: float, wall: float) -> None:
        """Stand at `ts`, or at the nearest moment there is. A loop that it lies outside of is over.

        Raises:
            ClockError: that is no moment.
        """
        if math.isnan(ts):
            raise ClockError("seek: not a moment")
        self.tick(wall)
        self.ts = min(max(ts, self.start), self.end)
        if self.loop is not None and not self.loop[0] <= self.ts <= self.loop[1]:
            self.loop = None

    def set_speed(self, speed: float | None, wall: float) -> None:
        """From now on; None: as fast as it goes.

        Raises:
            ClockError: slower than `SLOWEST` or faster than `FASTEST`.
        """
        if speed is not None and not SLOWEST <= speed <= FASTEST:
            raise ClockError(f"speed: from {SLOWEST:g} to {FASTEST:g} times, or as fast as it goes; not {speed:g}")
        self.tick(wall)
        self.speed = speed

    def set_loop(self, loop: tuple[float, float] | None, wall: float) -> None:
        """Stay inside a stretch, as far as it is on record; None: end that.

        Raises:
            ClockError: nothing of the stretch is on record.
        """
        self.tick(wall)
        if loop is None:
            self.loop = None
            return
        first, last = max(loop[0], self.start), min(loop[1], self.end)
        if not first < last:
            raise ClockError("loop: from an earlier moment to a later one, both inside the record")
        self.loop = first, last
        if not first <= self.ts <= last:
            self.ts = first

    def extend(self, end: float, *, complete: bool) -> None:
        """More of the record is there: up to `end`, and that is all where it is `complete`."""
        self.end = max(self.end, end)
        self.complete = complete
