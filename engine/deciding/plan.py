"""The K of each workload that together give the highest R, and which single change leads there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from engine.deciding.objective import Objective, Prospects
from engine.step_time.columns import Ints

_ALL_AT_ONCE: Final = 128
"""So many combinations are tried one and all; of more, one workload is varied at a time."""

Choices = Sequence[Sequence[int]]
"""The K that each workload may have."""


class Move(NamedTuple):
    """One workload's change, and the plan it is part of."""

    workload: int
    k: int
    lengths: Ints
    """The plan: the K of each workload."""
    gain: float
    """R of the plan over R now, less 1, over the steps in which a workload takes part that the plan changes."""


def best_lengths(objective: Objective, prospects: Prospects, now: Ints, choices: Choices) -> Ints:
    """The combination with the highest R; `now` unless something is better.

    Workloads share the drafter's passes, so that two may have to change before either pays: changing one at a time from
    where they are would not find it. Beyond a few of them the search starts once from each common upper limit.
    """

    def rate(lengths: Ints) -> float:
        return objective.rate(lengths, prospects)

    if prod(len(options) for options in choices) <= _ALL_AT_ONCE:
        candidates: Iterable[Ints] = (np.array(one, dtype=np.int64) for one in product(*choices))
    else:
        most = max(max(options) for options in choices)
        candidates = (_climbed(rate, _limited(choices, limit), choices) for limit in range(most + 1))
    best, found = now, rate(now)
    for lengths in candidates:
        reached = rate(lengths)
        if reached > found:
            best, found = lengths, reached
    return best


def next_move(objective: Objective, prospects: Prospects, now: Ints, choices: Choices) -> Move | None:
    """The change to make first on the way to the best combination; None where nothing is better. A workload that may
    not change now has its present K as its only choice."""
    best = best_lengths(objective, prospects, now, choices)
    differ = np.flatnonzero(best != now)
    if not len(differ):
        return None

    def alone(workload: int) -> Ints:
        lengths = now.copy()
        lengths[workload] = best[workload]
        return lengths

    first = int(max(differ, key=lambda workload: objective.rate(alone(workload), prospects)))
    touched = objective.among(np.asarray((objective.loads.rows[:, differ] > 0).any(axis=1)))
    gain = touched.rate(best, prospects) / touched.rate(now, prospects) - 1
    return Move(first, int(best[first]), best, gain)


def _limited(choices: Choices, limit: int) -> Ints:
    """Each workload's longest K up to `limit`; its shortest where there is none."""
    return np.array([max((k for k in options if k <= limit), default=min(options)) for options in choices])


def _climbed(rate: Callable[[Ints], float], lengths: Ints, choices: Choices) -> Ints:
    """As far up as changing one workload at a time leads."""
    reached = rate(lengths)
    improved = True
    while improved:
        improved = False
        for workload, options in enumerate(choices):
            for k in options:
                other = lengths.copy()
                other[workload] = k
                found = rate(other)
                if found > reached:
                    lengths, reached, improved = other, found, True
    return lengths
