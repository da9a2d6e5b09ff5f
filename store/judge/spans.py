"""Intervals of a speedup and of a share, from moments over 10-s cells."""

from __future__ import annotations

from math import exp, hypot, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

from store.judge.inputs import Floats
from store.judge.moments import Estimate, estimate, student


class Span(NamedTuple):
    """A ratio over n cells and its two-sided interval."""

    low: float
    value: float
    high: float
    n: int


MOST_REACH: Final = 50.0
"""Of a bound, as a logarithm: beyond it is no number but an accident of Student's t with next to no freedom."""


def speedup_span(sums: Floats, confidence: float, error: float) -> Span | None:
    """Interval of a realised speedup, with the calibration error of the vanilla-equivalent: relative variances add up
    (delta method on the logarithm).

    Args:
        error: standard error of the vanilla-equivalent, relative.
    """
    found = estimate(sums.tolist(), share=False)
    half = None if found is None else _half(found, confidence)
    if found is None or half is None or found.value <= 0:
        return None
    reach = hypot(half / found.value, NormalDist().inv_cdf((1 + confidence) / 2) * error)
    if not reach < MOST_REACH:
        return None  # one cell outweighs all others together: they tell nothing of how cells differ
    return Span(found.value * exp(-reach), found.value, found.value * exp(reach), found.n)


def share_span(sums: Floats, confidence: float) -> Span | None:
    """Interval of a share, cut to [0, 1]."""
    found = estimate(sums.tolist())
    half = None if found is None else _half(found, confidence)
    if found is None or half is None:
        return None
    return Span(max(0.0, found.value - half), found.value, min(1.0, found.value + half), found.n)


def _half(found: Estimate, confidence: float) -> float | None:
    if found.n_eff <= 1:
        return None
    return student(found.n_eff - 1, (1 + confidence) / 2) * sqrt(found.spread / found.n_eff)
