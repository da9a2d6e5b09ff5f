"""The order in which a rehearsal makes its passes. Pure: what is still to be done follows from what is done."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from console.rehearsing.passes.arms import drafts
from store.rehearsal.plan import PROPOSED, WITHOUT, Plan, fixed_k
from store.rehearsal.records import Stage

FALLBACK_TEST: Final = "fallback test"


class DuePass(NamedTuple):
    """One arm × one repeat. `number`: its place in the whole order, from 1; `repeat`: from 1."""

    number: int
    arm: str
    repeat: int
    stage: Stage


Step = DuePass | Literal["fallback test"]


def passes(plan: Plan) -> list[DuePass]:
    """Every pass of a plan, in order.

    Odd repeats go forwards, even ones backwards, so that an arm does not always stand at the same time of the
    rehearsal (ABBA). `without` stands at the end of the forward order, whatever its place in the plan: its passes of
    neighbouring repeats then share one engine start, and the engine that drafts is the first that is needed.
    """
    made = [
        (arm, repeat, stage)
        for repeat in range(1, plan.repeats + 1)
        for stage in [_stage(plan, repeat)]
        for arm in _in_turn(plan, repeat, stage)
    ]
    return [DuePass(number, *one) for number, one in enumerate(made, 1)]


def to_do(plan: Plan, done: Collection[int], *, proposable: bool = True, tested: bool = False) -> list[Step]:
    """What is left, in order.

    Args:
        done: numbers of the passes that were made.
        proposable: False once the survey gave no schedule: the passes of `proposed` are left out.
        tested: the fallback test was made.
    """
    left: list[Step] = [
        one for one in passes(plan) if one.number not in done and (proposable or one.arm != PROPOSED)
    ]  # fmt: skip
    if plan.fallback_test and not tested and any(map(drafts, plan.arms)):
        # While the engine that drafts is up anyway: after the last pass that needs it.
        last = max((place for place, one in enumerate(left, 1) if needs_drafter(one)), default=0)
        left.insert(last, FALLBACK_TEST)
    return left


def surveyed(plan: Plan, done: Collection[int]) -> bool:
    """Whether every pass from which the schedule is proposed was made."""
    return all(one.number in done for one in passes(plan) if one.stage == "survey")


def engine_starts(steps: Sequence[Step], drafting: bool | None = None) -> int:
    """How many engines are started for `steps`.

    Args:
        drafting: whether the one that is up has a drafter; None where none is: then one that has is started first.
    """
    needs = [True if drafting is None else drafting, *map(needs_drafter, steps)]
    return (drafting is None) + sum(before != after for before, after in pairwise(needs))


def _stage(plan: Plan, repeat: int) -> Stage:
    return "survey" if repeat <= plan.survey else "comparison"


def _in_turn(plan: Plan, repeat: int, stage: Stage) -> Iterator[str]:
    arms = [arm for arm in plan.arms if stage == "comparison" or arm == WITHOUT or fixed_k(arm) is not None]
    arms.sort(key=lambda arm: arm == WITHOUT)
    yield from arms if repeat % 2 else reversed(arms)


def needs_drafter(step: Step) -> bool:
    """Whether the engine that drafts is to be up for it."""
    return not isinstance(step, DuePass) or drafts(step.arm)
