"""Finds what a window gives reason to suspect, and whether the next one confirms it. Pure: looks in, findings out."""

from __future__ import annotations

from typing import NamedTuple

from store.judge.bucket import Against, BucketMemory, Suspected, Suspicion
from store.judge.compare import Compared, Sums, compared, confidence_of_two, plain
from store.judge.inputs import Floats
from store.judge.reference import pooled
from store.judge.scale import Window
from store.judge.settings import SHIFT_WINDOWS, WINDOWS, JudgeSettings


class Look(NamedTuple):
    """A window of a bucket that has ended and holds enough to be looked at."""

    number: int
    bucket: BucketMemory
    scale: int
    window: Window
    present: Sums
    """The window's moments as plain numbers."""

    @property
    def seconds(self) -> float:
        return WINDOWS[self.scale]

    @property
    def after_change(self) -> bool:
        """One of the first looks after a change of the engine, in windows short enough for a shift."""
        change = self.bucket.change
        return change is not None and self.scale < SHIFT_WINDOWS and change.looks_left[self.scale] > 0


class Found(NamedTuple):
    suspicion: Suspicion
    compared: Compared
    """With the first of the suspicion's levels."""


class Second(NamedTuple):
    """What the next window says of a suspicion."""

    stands: bool
    """It stands below, too, …"""
    sure: bool
    """… at the full confidence."""
    certain: bool
    """All that stood below in a row is enough for an alert, if it is independent."""
    compared: Compared
    """All windows that stood below together, with the first of the levels."""


def find(kind: Suspected, look: Look, settings: JudgeSettings) -> Found | None:
    return find_drift(look, settings) if kind == "drift" else find_shift(look, settings)


def find_drift(look: Look, settings: JudgeSettings) -> Found | None:
    """Below the moving baseline, or the pinned reference, or, while there is no baseline, the version before."""
    bucket, window = look.bucket, look.window
    baseline = bucket.baseline.usable(window.start, settings)
    references: list[tuple[Against, Floats | None]] = [
        ("baseline", baseline),
        ("pinned", bucket.baseline.usable_pinned(window.start)),
    ]
    change = bucket.change
    if change is not None and baseline is None and (change.low_already or not look.after_change):
        references.append(("change", change.level))
    for against, level in references:
        if level is not None:
            found = _first(look, "drift", against, [level], settings.drift_fall, window.start, settings)
            if found is not None:
                return found
    return None


def find_shift(look: Look, settings: JudgeSettings) -> Found | None:
    """Below the level before a change of the engine, or far below the last window before a moment.

    The moment may lie between two windows or inside the one before this: then the last window before it is the one
    before that. A single high window is no level: the windows before the moment, pooled, must say the same.
    """
    if look.scale >= SHIFT_WINDOWS:
        return None
    bucket, window = look.bucket, look.window
    change = bucket.change
    if change is not None and not change.low_already and look.after_change:
        found = _first(look, "shift", "change", [change.level], settings.change_fall, change.ts, settings)
        if found is not None:
            return found
    oldest = window.start - settings.before_seconds
    recent = [one for one in bucket.tracks[look.scale].recent if one.end > oldest]
    for place in range(len(recent) - 1, max(-1, len(recent) - 3), -1):
        last = recent[place]
        if last.start < bucket.settled:
            break
        alone = compared(look.present, plain(last.sums), settings, settings.least_confidence)
        if alone is not None and alone.stands_below(settings.shift_fall):
            levels = [pooled(recent[: place + 1]), last.sums]
            found = _first(look, "shift", "before", levels, settings.shift_fall, last.end, settings)
            if found is not None:
                return found
    return None


def second_look(suspicion: Suspicion, look: Look, settings: JudgeSettings) -> Second | None:
    """Hold the next window against what is suspected. None where no depth is common."""
    levels, threshold = suspicion.levels, suspicion.threshold
    alone = _held(levels, threshold, look.present, settings, settings.least_confidence)
    both = plain(pooled([Window(0.0, 0.0, suspicion.first), look.window]))
    shown = compared(both, plain(levels[0]), settings)
    together = _held(levels, threshold, both, settings, confidence_of_two(settings.confidence))
    if alone is None or together is None or shown is None:
        return None
    sure = bool(_held(levels, threshold, look.present, settings, settings.confidence))
    return Second(alone, sure, together or (suspicion.sure and sure), shown)


def _first(
    look: Look,
    kind: Suspected,
    against: Against,
    levels: list[Floats],
    threshold: float,
    moment: float,
    settings: JudgeSettings,
) -> Found | None:
    """A suspicion, where the window stands below all of these levels."""
    if not _held(levels, threshold, look.present, settings, settings.least_confidence):
        return None
    sure = bool(_held(levels, threshold, look.present, settings, settings.confidence))
    result = compared(look.present, plain(levels[0]), settings)
    assert result is not None  # it was held against this level
    window = look.window
    return Found(Suspicion(kind, against, levels, threshold, moment, window.end, window.sums.copy(), sure), result)


def _held(
    levels: list[Floats], threshold: float, present: Sums, settings: JudgeSettings, confidence: float
) -> bool | None:
    """Whether moments stand below all of the levels; None where one has no depth in common."""
    results = [compared(present, plain(level), settings, confidence) for level in levels]
    if any(result is None for result in results):
        return None
    return all(result is not None and result.stands_below(threshold) for result in results)
