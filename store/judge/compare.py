"""Whether a window stands below a reference at a depth that both sides know."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from store.judge.inputs import Floats
from store.judge.moments import UNDER, UNDER_UNDER, Fall, N, estimate, fall_below
from store.judge.settings import JudgeSettings

Sums = Sequence[Sequence[float]]
"""Columns × MOMENTS, as plain numbers: a look makes few and small sums, for which arrays are slow."""


class Compared(NamedTuple):
    depth: int
    fall: Fall

    def stands_below(self, threshold: float) -> bool:
        """The fall is above the threshold, and significant."""
        return self.fall.fall > threshold and self.fall.bound < 0


def common_depth(present: Sums, reference: Sums, settings: JudgeSettings) -> int | None:
    """The largest depth with enough draft steps on both sides, and not a rare one among what is drafted now."""
    for depth in range(min(len(present), len(reference)) - 1, 0, -1):
        share = present[depth][UNDER] / depth >= settings.depth_share * present[1][UNDER]
        if share and knows(present[depth], depth, settings) and knows(reference[depth], depth, settings):
            return depth
    return None


def deepest(sums: Sums, settings: JudgeSettings) -> int | None:
    """The depth to show of one side alone."""
    return common_depth(sums, sums, settings)


def knows(sums: Sequence[float], depth: int, settings: JudgeSettings) -> bool:
    """Whether there is enough of one depth to compare it. `depth` 0: of post-resume steps."""
    under = sums[UNDER]
    return (
        sums[N] >= settings.depth_sequences
        and under >= max(1, depth) * settings.depth_steps
        and under * under >= settings.fewest_effective * sums[UNDER_UNDER]
    )


def compared(
    present: Sums, reference: Sums, settings: JudgeSettings, confidence: float | None = None
) -> Compared | None:
    """None where no depth is common. `confidence`: one-sided, of the bound; that of the settings unless said."""
    depth = common_depth(present, reference, settings)
    if depth is None:
        return None
    here, there = estimate(present[depth]), estimate(reference[depth])
    if here is None or there is None:
        return None
    return Compared(depth, fall_below(here, there, confidence or settings.confidence))


def plain(sums: Floats) -> Sums:
    listed: list[list[float]] = sums.tolist()
    return listed


def confidence_of_two(confidence: float) -> float:
    """What two independent windows at this confidence show together: z grows with the root of the sample."""
    normal = NormalDist()
    return normal.cdf(sqrt(2) * normal.inv_cdf(confidence))
