"""Recorded time: what is left of a stretch of wall clock when outages and gaps are taken out of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce

Interval = tuple[float, float]
"""Start and end, Unix seconds."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time in disjoint intervals, ascending."""
    joined: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def intersection(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """Time that is in both; each is disjoint and ascending."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in left for b in right)
    return union(pair for pair in pairs if pair[0] < pair[1])


def recorded_seconds(
    start: float, end: float, outages: Mapping[str, Iterable[Interval]], engines: Collection[str]
) -> float:
    """Wall seconds between `start` and `end` without those in which no engine was recorded.

    Args:
        outages: by engine, stretches of which nothing is known.
        engines: all engines of the record; with none given nothing is taken out.
    """
    if end <= start:
        return 0.0
    if not engines:
        return end - start
    dark = reduce(intersection, (union(outages.get(engine, ())) for engine in engines))
    return end - start - sum(e - s for s, e in intersection(dark, [(start, end)]))
