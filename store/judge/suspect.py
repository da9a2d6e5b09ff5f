"""Finds what a window gives reason to suspect, and whether the next one confirms it. Pure: looks in, findings out."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from store.judge.bucket import Against, BucketMemory, Suspected, Suspicion
from store.judge.compare import Compared, Sums, compared, confidence_of_two, plain
from store.judge.inputs import Floats
from store.judge.moments import estimate, fall_below
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
    change = look.bucket.change
    if change is not None and not change.low_already and look.after_change:
        found = _first(look, "shift", "change", [change.level], settings.change_fall, change.ts, settings)
        if found is not None:
            return found
    falls = list(_falls(look, settings))
    if len(falls) > 1 and falls[1].fall - falls[0].fall > settings.slide_share * falls[1].fall:
        return falls[1].found  # the moment lies inside the window between: that one is low already
    return falls[0].found if falls else None


class _FallSince(NamedTuple):
    fall: float
    """Below the last window before the moment."""
    found: Found


def _falls(look: Look, settings: JudgeSettings) -> Iterator[_FallSince]:
    """Falls below the windows before this one that are large enough for a shift, the nearest first."""
    oldest = look.window.start - settings.before_seconds
    recent = [one for one in look.bucket.tracks[look.scale].recent if one.end > oldest]
    for place in range(len(recent) - 1, max(-1, len(recent) - 3), -1):
        last = recent[place]
        if last.start < look.bucket.settled:
            break
        alone = compared(look.present, plain(last.sums), settings, settings.least_confidence)
        if alone is not None and alone.stands_below(settings.shift_fall):
            levels = [pooled(recent[: place + 1]), last.sums]
            found = _first(look, "shift", "before", levels, settings.shift_fall, last.end, settings)
            if found is not None:
                yield _FallSince(alone.fall.fall, found)


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


def is_step(found: Found, reference: Floats, look: Look, settings: JudgeSettings) -> bool:
    """Whether a confirmed shift explains a drift, rather than being a part of it.

    It must be clearly above its threshold: a fall of nine points, of which chance makes ten, is none. And it must not
    be a slow fall.

    Args:
        reference: moments of what the drift stands below.
        look: at the window that confirmed it.
    """
    if found.suspicion.against != "before":
        return True
    fall = found.compared.fall
    least = -fall_below(fall.present, fall.reference, settings.step_confidence).bound
    return least > found.suspicion.threshold and not _slides(found, reference, look, settings)


def _slides(found: Found, reference: Floats, look: Look, settings: JudgeSettings) -> bool:
    """Whether what looks like a shift inside a window is a slow fall.

    Of a slow fall, too, one window stands high, the next in between, those after it low. But before a step all is well,
    and after it nothing changes: how far the window before had left the reference, and how much the two after it
    differ, are 0 but for chance.
    """
    suspicion, depth = found.suspicion, found.compared.depth
    if suspicion.since - suspicion.moment <= look.seconds:
        return False  # it lies between two windows
    windows = (plain(reference), plain(suspicion.levels[-1]), plain(suspicion.first), look.present)
    levels = [estimate(one[depth]) if depth < len(one) else None for one in windows]
    well, last, first, then = levels
    if well is None or last is None or first is None or then is None:
        return False
    slid = well.value - last.value + first.value - then.value
    chance = sqrt(sum(one.spread / one.n_eff for one in (well, last, first, then)))
    fall = well.value - (first.value + then.value) / 2
    return slid > settings.slide_share * fall and slid > chance * NormalDist().inv_cdf(settings.step_confidence)


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
