"""Figures over repeats. A level is averaged as it is, a ratio by its logarithm, repeat by repeat in pairs."""

from __future__ import annotations

from collections.abc import Mapping

from engine.intervals import Interval, arithmetic_mean, geometric_mean
from store.rehearsal.result_records import Estimate


def level(by_repeat: Mapping[int, float]) -> Estimate | None:
    """Mean over repeats with Student's t interval, cut at 0; None without any."""
    if not by_repeat:
        return None
    value, interval = arithmetic_mean(list(by_repeat.values()))
    return _estimate(value, interval, by_repeat)


def paired(over: Mapping[int, float], under: Mapping[int, float]) -> Estimate | None:
    """Geometric mean of over/under in the repeats that have both, both above 0."""
    return of_ratios(
        {r: over[r] / under[r] for r in sorted(over.keys() & under.keys()) if over[r] > 0 and under[r] > 0}
    )


def of_ratios(by_repeat: Mapping[int, float]) -> Estimate | None:
    """Geometric mean of ratios with Student's t interval on their logarithms; None without any."""
    if not by_repeat:
        return None
    value, interval = geometric_mean(list(by_repeat.values()))
    return _estimate(value, interval, by_repeat)


def _estimate(value: float, interval: Interval | None, by_repeat: Mapping[int, float]) -> Estimate:
    low, high = interval if interval is not None else (None, None)
    return Estimate(value=value, low=low, high=high, by_repeat=sorted(by_repeat.items()))
