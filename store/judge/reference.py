"""What a bucket's present acceptance is held against: its moving baseline, and its pinned reference."""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np

from store.judge.arrays import columns_at_least
from store.judge.inputs import Floats
from store.judge.moments import MOMENTS, N
from store.judge.scale import Window
from store.judge.settings import HOUR, JudgeSettings


def pooled(windows: list[Window]) -> Floats:
    """The moments of all of them, columns × MOMENTS."""
    return sum_windows([window.sums for window in windows])


def sum_windows(sums: list[Floats]) -> Floats:
    """The sum of moments (columns × MOMENTS) that may have unequally many columns."""
    total = np.zeros((max((len(one) for one in sums), default=1), MOMENTS))
    for one in sums:
        total[: len(one)] += one
    return total


class Pinned(msgspec.Struct):
    """A level that doesn't move: the first full week of a model version, or from when the operator accepted it."""

    since: float
    sums: Floats
    usable_from: float


class Baseline(msgspec.Struct, dict=True):
    """The moving baseline and the pinned reference of one bucket, in windows of six hours.

    Their time, "baseline time", stands still while an acceptance alert of the bucket fires: what is seen then is no
    standard, and what was seen before must not grow old meanwhile. It is record time less all such stretches; all that
    is kept here is in baseline time, all that is handed in or asked in record time.
    """

    windows: list[Window] = []
    held: list[Window] = []
    """Seen while something was suspected: they count once it came to nothing."""
    pinned: Pinned | None = None
    paused: float = 0.0
    """Record time less baseline time, s."""
    accepted: bool = False
    """Usable although young: the operator said so."""

    def time(self, ts: float) -> float:
        return ts - self.paused

    def add(self, window: Window, settings: JudgeSettings) -> None:
        """Add a window in which all was well, and those that were held before it."""
        self.hold(window)
        for one in self.held:
            self._pin(one, settings)
        oldest = self.time(window.end) - settings.baseline_seconds
        self.windows = [one for one in (*self.windows, *self.held) if one.end > oldest]
        self.held = []
        self.accepted &= self.time(window.end) - self.windows[0].start < settings.usable_seconds
        self._found.clear()

    def hold(self, window: Window) -> None:
        """Keep a window until it is known whether all was well."""
        self.held.append(Window(self.time(window.start), self.time(window.end), window.sums))

    def pause(self, seconds: float) -> None:
        """An alert fired for so long; what was held is part of what was wrong."""
        self.paused += seconds
        self.held = []
        self._found.clear()

    def accept(self, level: list[Window], ts: float, settings: JudgeSettings) -> None:
        """The level of these windows is the right one from now on."""
        total = Window(self.time(min(one.start for one in level)), self.time(ts), pooled(level))
        self.windows, self.held, self.accepted = [total], [], True
        self.pinned = Pinned(total.end, total.sums, total.end)
        self._found.clear()

    def usable(self, ts: float, settings: JudgeSettings) -> Floats | None:
        """Moments of the moving baseline at the depths of which it is old enough; None before there are any.

        It moves by the hour.
        """
        now = self.time(ts) // HOUR * HOUR
        if now not in self._found:
            self._found.clear()
            self._found[now] = self._at(now, settings)
        return self._found[now]

    def usable_pinned(self, ts: float) -> Floats | None:
        if self.pinned is None or self.time(ts) < self.pinned.usable_from:
            return None
        return self.pinned.sums

    @cached_property
    def _found(self) -> dict[float, Floats | None]:
        """The answer for one hour."""
        return {}

    def _at(self, now: float, settings: JudgeSettings) -> Floats | None:
        windows = [one for one in self.windows if one.end > now - settings.baseline_seconds]
        total = pooled(windows)
        if not self.accepted:
            for column in range(len(total)):
                first = next((one for one in windows if len(one.sums) > column and one.sums[column, N] > 0), None)
                if first is None or now - first.start < settings.usable_seconds:
                    total[column] = 0
        return total if total.any() else None

    def _pin(self, window: Window, settings: JudgeSettings) -> None:
        if self.pinned is None:
            nothing = np.zeros((1, MOMENTS))
            self.pinned = Pinned(window.start, nothing, window.start + settings.pinned_seconds)
        if window.end <= self.pinned.since + settings.pinned_seconds:
            self.pinned.sums = columns_at_least(self.pinned.sums, len(window.sums), 0).copy()
            self.pinned.sums[: len(window.sums)] += window.sums
