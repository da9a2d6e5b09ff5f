"""Medians and trimmed means of rows that stand for many steps each: of a whole column, or of each group in it."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.step_time.columns import Floats, Groups

ROBUST_SD: Final = 1.4826
"""Standard deviation over median absolute deviation, of the normal distribution."""


STALL: Final = 5.0
"""So many times the median, or as small a part of it, is no noise of the load but something else."""


def grouped_mean(values: Floats, weights: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """The weighted mean of each group without what is `STALL` times its median or more, and the standard deviation of
    one step about it. Values and weights are above 0.

    A median would do for what is symmetric; times are not, and what is held against sums of times must be a mean.
    """
    middle = grouped_median(values, weights, groups)[groups.of]
    kept = np.where((values < STALL * middle) & (values > middle / STALL), weights, 0.0)
    total = groups.sums(kept)
    mean = groups.sums(kept * values) / total
    return mean, np.sqrt(groups.sums(kept * (values - mean[groups.of]) ** 2) / total)


def grouped_median(values: Floats, weights: Floats, groups: Groups) -> Floats:
    """The weighted median of each group: the lower one where two values would do. Weights are above 0."""
    order = np.lexsort((values, groups.of))
    ordered, reached = values[order], np.cumsum(weights[order])
    last = np.cumsum(np.bincount(groups.of, minlength=groups.number)) - 1
    ends = reached[last]
    starts = np.concatenate(([0.0], ends[:-1]))
    middle = (starts + ends) / 2
    first = np.concatenate(([0], last[:-1] + 1))
    place = np.clip(np.searchsorted(reached, middle), first, last)  # sums of huge weights round
    return np.asarray(ordered[place], dtype=np.float64)


def median(values: Floats, weights: Floats) -> float:
    """The weighted lower median of at least one value."""
    return float(grouped_median(values, weights, Groups(np.zeros(len(values), dtype=np.int64), 1))[0])
