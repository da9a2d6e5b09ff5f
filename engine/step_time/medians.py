"""Medians of rows that stand for many steps each: of a whole column, or of each group in it."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.step_time.columns import Floats, Groups

ROBUST_SD: Final = 1.4826
"""Standard deviation over median absolute deviation, of the normal distribution."""


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
