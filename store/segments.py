"""Which rollups a stretch of record time is read from: the coarsest cells that fit, raw rows at the edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from store.levels import FINEST, LEVELS, Level


class Segment(NamedTuple):
    """Cells of one level that begin in [start, end), Unix seconds."""

    level: Level
    start: float
    end: float


class Stretch(NamedTuple):
    """How (start, end] is read: raw rows that ended in (start, first), cells, raw rows that ended in [last, end].

    `first` = `last` where there are no cells between.
    """

    start: float
    first: float
    segments: list[Segment]
    last: float
    end: float


def split(start: float, end: float, raw_from: float, rolled: Sequence[float], kept: Sequence[float]) -> Stretch:
    """The stretch (start, end] of record time.

    Args:
        raw_from: rows that ended at it or before are gone; where an edge would be read from them, the stretch is
            widened to the whole cell that holds it.
        rolled: for each of `LEVELS`, up to when it is rolled up.
        kept: for each of `LEVELS`, from when on its cells are still there.
    """
    if start < raw_from:
        first = _cell_of(start, kept)[0]
        start = math.nextafter(first, -math.inf)  # a step that ended at the edge is in the cell
    else:
        first = FINEST.floor(start) + FINEST.seconds
    whole = end if math.isfinite(end) else rolled[0] + FINEST.seconds
    last = min(FINEST.floor(whole), rolled[0])
    if last <= raw_from and last < rolled[0]:
        last = min(_cell_of(whole, kept)[1], rolled[0])
        end = math.nextafter(last, -math.inf)  # and one that ended here is in the next
    if first >= last:
        edge = max(start, min(raw_from, end))
        return Stretch(edge, edge, [], edge, end)
    return Stretch(start, first, _within(first, last, len(LEVELS) - 1, rolled), last, end)


def _cell_of(ts: float, kept: Sequence[float]) -> tuple[float, float]:
    """Start and end of the finest cell still there that holds `ts`."""
    if ts <= 0:
        return 0.0, 0.0
    there = (level for level, since in zip(LEVELS, kept, strict=True) if since <= ts)
    level = next(there, LEVELS[-1])
    return level.floor(ts), level.floor(ts) + level.seconds


def _within(first: float, last: float, place: int, rolled: Sequence[float]) -> list[Segment]:
    """[first, last) in as few segments of this level and finer ones as its ends allow; coarse in the middle."""
    if first >= last:
        return []
    level = LEVELS[place]
    if place == 0:
        return [Segment(level, first, last)]
    inner_first, inner_last = math.ceil(first / level.seconds) * level.seconds, level.floor(min(last, rolled[place]))
    if inner_first >= inner_last:
        return _within(first, last, place - 1, rolled)
    return [
        *_within(first, inner_first, place - 1, rolled),
        Segment(level, inner_first, inner_last),
        *_within(inner_last, last, place - 1, rolled),
    ]
