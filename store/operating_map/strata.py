"""What an arm's steps gave at each number of running sequences: the counts that cells of the map are made of."""

from __future__ import annotations

from typing import NamedTuple


class Stratum(NamedTuple):
    """Steps in which so many sequences ran.

    Of a workload: `emitted` tokens of its decode rows, and the `seconds` of their steps, a step as often as it has such
    a row, so that `emitted / seconds` is tokens/s per sequence. Of the mix (None): tokens and seconds of the steps.
    """

    workload: str | None
    running: int
    steps: int
    emitted: int
    seconds: float


class ArmStrata(NamedTuple):
    """The strata of one arm in one repeat."""

    arm: str
    repeat: int
    strata: tuple[Stratum, ...]
