"""The arms of a plan: which are taken for arms at all, and which take part in which repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.rehearsing.plans.errors import PlanError, nearest, shown
from store.rehearsal.plan import ADAPTIVE, PROPOSED, WITHOUT, Plan, fixed_arm, fixed_k

_WORDS: Final = (WITHOUT, PROPOSED, ADAPTIVE)
_LONGEST: Final = 8
"""Characters of an arm of a draft length: no engine drafts millions of tokens."""


def fixed(arms: Sequence[str]) -> dict[str, int]:
    """Draft lengths by arm, of those that have one."""
    return {arm: k for arm in arms if (k := fixed_k(arm)) is not None}


def in_survey(arm: str) -> bool:
    """`without` and the fixed arms are tried first; the others need what is found there."""
    return arm not in (PROPOSED, ADAPTIVE)


def traffic_seconds(plan: Plan) -> float:
    """Of all its passes, without engine starts and last answers."""
    surveyed = sum(in_survey(arm) for arm in plan.arms)
    return plan.seconds * (plan.survey * surveyed + (plan.repeats - plan.survey) * len(plan.arms))


def check_arms(plan: Plan) -> None:
    """Raises PlanError for arms that are none, double, or can't take part in any repeat."""
    if not plan.arms:
        raise PlanError('arms is empty: say what is compared, e.g. arms = ["without", "k0", "k2"]')
    for number, arm in enumerate(plan.arms, 1):
        if not _is_arm(arm):
            known = (*_WORDS, "k0", "k1", "k2", "k3", "k4")
            raise PlanError(
                f"arms: {shown(arm)} is no arm{nearest(arm, known)} (k0, k1, k2 … for fixed draft lengths, "
                f"{', '.join(_WORDS)})"
            )
        if arm in plan.arms[: number - 1]:
            raise PlanError(f"arms: {arm} stands there twice; repeats says how often each is tried")
    late = [arm for arm in plan.arms if not in_survey(arm)]
    if late and plan.survey >= plan.repeats:
        raise PlanError(
            f"survey is {plan.survey} of {plan.repeats} repeats, so that none is left for {' and '.join(late)}; raise "
            "repeats"
        )
    if PROPOSED in plan.arms:
        _check_proposed(plan)
    if plan.survey and not any(map(in_survey, plan.arms)):
        raise PlanError(
            f"survey is {plan.survey}, and no fixed arm is there to be surveyed; survey = 0, or add k0 and k2"
        )


def _check_proposed(plan: Plan) -> None:
    if plan.survey < 1:
        raise PlanError("survey is 0, and the schedule of the arm proposed comes from the survey; survey = 1 at least")
    if len(fixed(plan.arms)) < 2:
        raise PlanError("arms: proposed chooses among fixed draft lengths; have two at least, e.g. k0 and k2")


def _is_arm(arm: str) -> bool:
    if arm in _WORDS:
        return True
    k = fixed_k(arm) if len(arm) <= _LONGEST else None
    return k is not None and fixed_arm(k) == arm
