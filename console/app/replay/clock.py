"""Where a replay stands as the screen shows it: what the feed said, and at once what a key has asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from console.feed.messages import ReplayMark, ReplayView

SPEEDS: Final[tuple[float | None, ...]] = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, None)
"""Seconds of record a second; None, as fast as it goes, is the fastest."""

MarkKind = Literal["alert", "control", "version", "gap"]


@dataclass(frozen=True)
class Expected:
    """What the keys pressed so far will make of the replay, shown until its own picture says so.

    `ts`: where its clock will stand, None where that does not change or is not known here.
    """

    ts: float | None
    playing: bool
    speed: float | None
    loop: tuple[float, float] | None


def shown_view(view: ReplayView, expected: Expected | None) -> ReplayView:
    """The view with what is expected of it."""
    if expected is None:
        return view
    return replace(view, playing=expected.playing, speed=expected.speed, loop=expected.loop)


def next_speed(speed: float | None, step: int) -> float | None:
    """The next faster (1) or slower (-1) one of `SPEEDS`; the last stays."""
    rank = [float("inf") if one is None else one for one in SPEEDS]
    now = float("inf") if speed is None else speed
    if step > 0:
        return next((one for one, order in zip(SPEEDS, rank, strict=True) if order > now), SPEEDS[-1])
    return next((one for one, order in zip(reversed(SPEEDS), reversed(rank), strict=True) if order < now), SPEEDS[0])


def speed_text(speed: float | None) -> str:
    return "max" if speed is None else f"×{speed:g}"


def neighbour(marks: Sequence[ReplayMark], ts: float, step: int, kind: MarkKind | None = None) -> ReplayMark | None:
    """The nearest mark (of a kind) after `ts` (step 1) or before it (-1). The marks are in the order of time."""
    wanted = [mark for mark in marks if kind is None or mark.kind == kind]
    if step > 0:
        return next((mark for mark in wanted if mark.ts > ts), None)
    return next((mark for mark in reversed(wanted) if mark.ts < ts), None)
