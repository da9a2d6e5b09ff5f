"""Whether arms that change K hold against the best fixed one: chosen on the survey, compared on the other repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.intervals import geometric_mean
from store.operating_map.pairing import rate_ratio
from store.rehearsal.arm_passes import ArmPasses
from store.rehearsal.estimates import of_ratios, paired
from store.rehearsal.parts import speedups
from store.rehearsal.plan import ADAPTIVE, PROPOSED, fixed_k
from store.rehearsal.result_records import Estimate, Holding

POINT: Final = 0.93
REACHED: Final = 0.97
"""The ratio to the best fixed arm is at least the first, and its interval reaches the second."""


def holding(arms: Mapping[str, ArmPasses], survey: int, phases: int) -> Iterator[Holding]:
    """For the proposed schedule and adaptive, over the whole pass and in each phase.

    Choosing and comparing on the same repeats would favour the fixed arm that was lucky there. `survey`: repeats on
    which it is chosen, the first ones.
    """
    fixed = {arm: passes for arm, passes in arms.items() if fixed_k(arm) is not None}
    for name in (PROPOSED, ADAPTIVE):
        if name in arms:
            for phase in (None, *range(phases)):
                found = _held(arms[name], fixed, survey, phase)
                if found is not None:
                    yield found


def _held(arm: ArmPasses, fixed: Mapping[str, ArmPasses], survey: int, phase: int | None) -> Holding | None:
    busy = {name: passes.busy(phase) for name, passes in fixed.items()}
    chosen = {
        name: geometric_mean(seen)[0]
        for name, rates in busy.items()
        if (seen := [rate for repeat, rate in rates.items() if repeat <= survey])
    }
    if not chosen:
        return None
    best, worst = max(chosen, key=lambda name: chosen[name]), min(chosen, key=lambda name: chosen[name])
    mine = {repeat: rate for repeat, rate in arm.busy(phase).items() if repeat > survey}
    ratio = paired(mine, busy[best])
    if ratio is None:
        return None
    e2e = {repeat: one for repeat, one in speedups(fixed[best], arm, phase).items() if repeat > survey}
    return Holding(
        arm=arm.arm,
        phase=phase,
        best=best,
        against_best=ratio,
        e2e=of_ratios(e2e),
        equal_load=of_ratios(_at_equal_load(arm, fixed[best], survey, phase)),
        holds=holds(ratio),
        worst=worst if worst != best else None,
        against_worst=paired(mine, busy[worst]) if worst != best else None,
    )


def _at_equal_load(arm: ArmPasses, best: ArmPasses, survey: int, phase: int | None) -> dict[int, float]:
    found = {}
    for repeat, one in arm.repeats.items():
        if repeat > survey and repeat in best.repeats:
            ratio = rate_ratio(one.digest.loads.get(phase, {}), best.repeats[repeat].digest.loads.get(phase, {}))
            if ratio is not None:
                found[repeat] = ratio
    return found


def holds(ratio: Estimate) -> bool | None:
    """None where one repeat can't tell; below `POINT` it fails with one as well."""
    if ratio.value < POINT:
        return False
    return None if ratio.high is None else ratio.high >= REACHED
