"""Spec tax: what an engine pays for its drafter while it drafts nothing. K = 0 still runs the drafter's pass."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Final

from store.rehearsal.arm_passes import ArmPasses
from store.rehearsal.digest import Pace
from store.rehearsal.estimates import of_ratios, paired
from store.rehearsal.plan import WITHOUT, fixed_arm
from store.rehearsal.result_records import SpecTax

FEWEST: Final = 5
"""Steps of a number of running sequences, on both sides, from which their medians are compared."""


def spec_tax(arms: Mapping[str, ArmPasses]) -> SpecTax | None:
    """None where an engine without speculation or K = 0 was not measured."""
    ordinary, idle = arms.get(WITHOUT), arms.get(fixed_arm(0))
    if ordinary is None or idle is None:
        return None
    ratios = {
        repeat: step_time_ratio(one.digest.paces, ordinary.repeats[repeat].digest.paces)
        for repeat, one in idle.repeats.items()
        if repeat in ordinary.repeats
    }
    return SpecTax(
        step_time=of_ratios({repeat: ratio for repeat, ratio in ratios.items() if ratio is not None}),
        busy=paired(idle.busy(None), ordinary.busy(None)),
    )


def step_time_ratio(over: Mapping[int, Pace], under: Mapping[int, Pace]) -> float | None:
    """Geometric mean, over the numbers of running sequences that both have, of the ratio of median step times; each
    with the weight of the fewer steps."""
    pairs = [
        (min(pace.steps, under[running].steps), log(pace.seconds / under[running].seconds))
        for running, pace in over.items()
        if running in under
        and min(pace.steps, under[running].steps) >= FEWEST
        and pace.seconds > 0
        and under[running].seconds > 0
    ]
    whole = sum(weight for weight, _ in pairs)
    return exp(sum(weight * value for weight, value in pairs) / whole) if whole else None
