"""Whether arms that change K hold against the best fixed one: chosen on the survey, compared on the other repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.intervals import geometric_mean
from store.operating_map.pairing import rate_ratio
from store.rehearsal.arm_passes import ArmPasses
from store.rehearsal.arms import drafts
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

    Compared is tokens/s at equal load. Busy tokens/s alone would favour an arm for its own slowness: it lets sequences
    pile up, whose shared steps make more tokens/s, and hands them on to the next phase (in a simulated rehearsal 0.76
    for an arm that answered sooner than the one it was held against).
    """
    fixed = {arm: passes for arm, passes in arms.items() if fixed_k(arm) is not None}
    for name in (PROPOSED, ADAPTIVE):
        if name in arms:
            for phase in (None, *range(phases)):
                found = _held(arms[name], fixed, survey, phase)
                if found is not None:
                    yield found


def _held(arm: ArmPasses, fixed: Mapping[str, ArmPasses], survey: int, phase: int | None) -> Holding | None:
    chosen = _chosen(fixed, survey, phase)
    if not chosen:
        return None
    best, worst = max(chosen, key=lambda name: chosen[name]), min(chosen, key=lambda name: chosen[name])
    ratio = of_ratios(_later(at_equal_load(arm, fixed[best], phase), survey))
    if ratio is None:
        return None
    return Holding(
        arm=arm.arm,
        phase=phase,
        best=best,
        against_best=ratio,
        holds=holds(ratio),
        busy=paired(_later(arm.busy(phase), survey), fixed[best].busy(phase)),
        e2e=of_ratios(_later(speedups(fixed[best], arm, phase), survey)),
        worst=worst if worst != best else None,
        against_worst=(of_ratios(_later(at_equal_load(arm, fixed[worst], phase), survey)) if worst != best else None),
    )


def _chosen(fixed: Mapping[str, ArmPasses], survey: int, phase: int | None) -> dict[str, float]:
    """Each fixed arm's tokens/s at equal load over those of the one that drafts least, on the survey."""
    found: dict[str, float] = {}
    for name in sorted(fixed, key=drafts):
        against = fixed[next(iter(found), name)]
        ratios = {r: one for r, one in at_equal_load(fixed[name], against, phase).items() if r <= survey}
        if ratios:
            found[name] = geometric_mean(list(ratios.values()))[0]
    return found


def at_equal_load(over: ArmPasses, under: ArmPasses, phase: int | None) -> dict[int, float]:
    """Tokens/s of one arm over another's with as many sequences running, for each repeat that both have."""
    found = {}
    for repeat in over.repeats.keys() & under.repeats.keys():
        loads = (one.repeats[repeat].digest.loads.get(phase, {}) for one in (over, under))
        ratio = rate_ratio(*loads)
        if ratio is not None:
            found[repeat] = ratio
    return found


def _later(by_repeat: Mapping[int, float], survey: int) -> dict[int, float]:
    return {repeat: value for repeat, value in by_repeat.items() if repeat > survey}


def holds(ratio: Estimate) -> bool | None:
    """None where one repeat can't tell; below `POINT` it fails with one as well."""
    if ratio.value < POINT:
        return False
    return None if ratio.high is None else ratio.high >= REACHED
