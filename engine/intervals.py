"""Intervals of ratios whose parts are alike in clusters: steps of one request, blocks of one run. Arithmetic only."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

CONFIDENCE: Final = 0.95

Amounts = npt.ArrayLike
"""One number for each cluster."""


class Interval(NamedTuple):
    low: float
    high: float


def effective_n(under: Amounts) -> float:
    """(Σy)² / Σy² (Kish): as many equally large clusters would tell as much. 0 where there are none."""
    y = np.asarray(under, dtype=float)
    squares = float((y * y).sum())
    return float(y.sum()) ** 2 / squares if squares else 0.0


def ratio_interval(
    over: Amounts, under: Amounts, *, confidence: float = CONFIDENCE, share: bool = True
) -> Interval | None:
    """The interval of X = Σx / Σy over n clusters (x, y).

    Ratio estimator (Cochran, Sampling Techniques, 3rd ed., §6; definitions.md, "Intervals"):
    var ≈ n/(n−1) · Σ(x − X y)² / (Σy)², Student's t with n_eff − 1 degrees of freedom. None where there is nothing to
    divide by, where one cluster alone can't tell how clusters differ, and for what is no share and 0.

    Args:
        share: x is a part of y. Then the interval is cut to [0, 1], and nothing or all has the exact binomial
            (Clopper-Pearson) on n_eff; else it is cut at 0 only.
    """
    x, y = np.asarray(over, dtype=float), np.asarray(under, dtype=float)
    x, y = x[y > 0], y[y > 0]
    n, total = len(y), float(y.sum())
    if not n:
        return None
    n_eff, tail, ratio = effective_n(y), (1 - confidence) / 2, float(x.sum()) / total
    if share and ratio == 0:
        return Interval(0.0, 1 - tail ** (1 / n_eff))
    if share and ratio == 1:
        return Interval(tail ** (1 / n_eff), 1.0)
    if n < 2 or n_eff <= 1 or ratio == 0:
        return None
    residuals = x - ratio * y
    half = _reach(n_eff - 1, tail) * sqrt(n / (n - 1) * float((residuals * residuals).sum())) / total
    return Interval(max(0.0, ratio - half), min(1.0, ratio + half) if share else ratio + half)


def arithmetic_mean(values: Sequence[float], *, confidence: float = CONFIDENCE) -> tuple[float, Interval | None]:
    """Mean of amounts that are 0 or more, with Student's t interval cut at 0; None of one alone."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, None
    spread = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = reach(n - 1, confidence) * spread
    return mean, Interval(max(0.0, mean - half), mean + half)


def interval_of_sums(
    n: int, under: float, over: float, under_under: float, under_over: float, over_over: float
) -> Interval | None:
    """`ratio_interval` of a share from sums over clusters: how many, Σy, Σx, Σy², Σxy, Σx². At 95 %."""
    if not n or under <= 0:
        return None
    n_eff, tail, ratio = under * under / under_under, (1 - CONFIDENCE) / 2, over / under
    if over <= 0:
        return Interval(0.0, 1 - tail ** (1 / n_eff))
    if over >= under:
        return Interval(tail ** (1 / n_eff), 1.0)
    if n < 2 or n_eff <= 1:
        return None
    residuals = max(0.0, over_over - 2 * ratio * under_over + ratio * ratio * under_under)
    half = _reach(n_eff - 1, tail) * sqrt(n / (n - 1) * residuals) / under
    return Interval(max(0.0, ratio - half), min(1.0, ratio + half))


def geometric_mean(ratios: Sequence[float], *, confidence: float = CONFIDENCE) -> tuple[float, Interval | None]:
    """Geometric mean of paired ratios, with Student's t interval on their logarithms; None of one pair alone."""
    logs = [log(one) for one in ratios]
    n = len(logs)
    mean = sum(logs) / n
    if n < 2:
        return exp(mean), None
    spread = sqrt(sum((value - mean) ** 2 for value in logs) / (n - 1) / n)
    half = reach(n - 1, confidence) * spread
    return exp(mean), Interval(exp(mean - half), exp(mean + half))


def reach(freedom: float, confidence: float = CONFIDENCE) -> float:
    """How many standard errors the interval goes to each side: Student's t."""
    return _reach(freedom, (1 - confidence) / 2)


def _reach(freedom: float, tail: float) -> float:
    from scipy.special import stdtrit  # a quarter of a second that `--help` need not wait for

    return float(stdtrit(freedom, 1 - tail))
