"""Sums over sequences from which a ratio, its variance and its effective n follow: they add up over windows.

The ratio estimator of `engine.intervals.ratio_interval`, written in moments because seven days of sequences can't be
kept: Σ(x − X y)² = Σx² − 2X Σxy + X² Σy².
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from store.judge.inputs import Floats, Ints

MOMENTS: Final = 6
N, UNDER, OVER, UNDER_UNDER, UNDER_OVER, OVER_OVER = range(MOMENTS)
"""Clusters with y > 0, Σy, Σx, Σy², Σxy, Σx²: the last axis of an array of moments."""


def moments(under: Floats, over: Floats, group: Ints) -> tuple[Ints, Floats]:
    """Moments of each group of clusters, and the groups, ascending.

    Args:
        under, over: y and x, clusters × columns.
        group: ascending, one of each cluster.

    Returns:
        groups (g), moments (g × columns × MOMENTS).
    """
    if not len(group):
        return group, np.zeros((0, under.shape[1], MOMENTS))
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    parts = ((under > 0).astype(float), under, over, under * under, under * over, over * over)
    return group[starts], np.stack([np.add.reduceat(part, starts, axis=0) for part in parts], axis=-1)


class Estimate(NamedTuple):
    """A ratio X = Σx / Σy over n clusters. Its variance is `spread / n_eff`."""

    value: float
    n: int
    n_eff: float
    """(Σy)² / Σy²."""
    spread: float
    """n/(n−1) · Σ(x − X y)² / Σy²: the variance between clusters."""


def estimate(sums: Sequence[float], *, share: bool = True) -> Estimate | None:
    """The ratio of one set of moments; None of fewer than two clusters.

    Args:
        share: x is a part of y. Where nothing or all of it was seen clusters can't tell how they differ: then the
            spread is that of one more half cluster on the other side.
    """
    n, under, over, under_under, under_over, over_over = sums
    if n < 2 or under <= 0:
        return None
    ratio, n_eff = over / under, under * under / under_under
    residuals = max(0.0, over_over - 2 * ratio * under_over + ratio * ratio * under_under)
    spread = n / (n - 1) * residuals / under_under
    if share and (over == 0 or over == under):
        shrunk = 0.5 / (n_eff + 1)
        spread = shrunk * (1 - shrunk)
    return Estimate(ratio, int(n), n_eff, spread)


class Fall(NamedTuple):
    """How far a present ratio stands below a reference. Fractions, not points."""

    present: Estimate
    reference: Estimate
    fall: float
    """reference − present."""
    bound: float
    """Upper end of present − reference, one-sided: below 0 the fall is significant."""


def fall_below(present: Estimate, reference: Estimate, confidence: float) -> Fall:
    """Compare two independent ratios (Welch's t with Satterthwaite's degrees of freedom, n_eff − 1 on each side).

    Both variances use the larger of the two spreads: a window in which all sequences happened to be alike, as they are
    near 0 and near 1, must not look surer than the bucket is.
    """
    fall = reference.value - present.value
    a, b = 1 / present.n_eff, 1 / reference.n_eff
    freedom = (a + b) ** 2 / (a * a / max(present.n_eff - 1, 1e-9) + b * b / max(reference.n_eff - 1, 1e-9))
    reach = student(freedom, confidence) * sqrt(max(present.spread, reference.spread) * (a + b))
    return Fall(present, reference, fall, reach - fall)


def student(freedom: float, probability: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit  # a quarter of a second that `--help` need not wait for

    return float(stdtrit(freedom, probability))
