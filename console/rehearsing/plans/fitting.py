"""A built-in plan as a certain engine can run it: what is beyond the engine is left out, and said."""

from __future__ import annotations

import msgspec

from console.rehearsing.levels import default_schedule
from console.rehearsing.plans.arms import fixed
from console.rehearsing.plans.errors import PlanError
from engine.schedule import ScheduleError
from store.rehearsal.plan import PROPOSED, WITHOUT, Plan, fixed_arm


def fitted(
    plan: Plan, max_k: int, drafts: bool, own_engine: bool, max_num_seqs: int | None = None
) -> tuple[Plan, list[str]]:
    """The plan with the arms that this engine has, and what was changed, a sentence each.

    Draft lengths above `max_k` are left out; the largest one of the engine stands for them. `own_engine`: the rehearsal
    starts its engines itself, and so also one without speculation.

    Raises:
        PlanError: the engine drafts nothing, so that there is nothing to compare.
    """
    if not drafts or max_k < 1:
        raise PlanError("the engine has no drafter: there is nothing to rehearse; start it with --drafter")
    arms, notes = _within(plan.arms, max_k)
    if WITHOUT in arms and not own_engine:
        arms.remove(WITHOUT)
        notes.append("without speculation is not measured: the running engine would have to be stopped for it")
    if PROPOSED in arms and len(fixed(arms)) < 2:
        arms.remove(PROPOSED)
        notes.append("no schedule is proposed: the engine has one draft length only")
    fallback = plan.fallback_test
    if fallback and max_num_seqs is not None:
        try:
            default_schedule(max_k, max_num_seqs)
        except ScheduleError as error:
            fallback = False
            notes.append(f"the fallback test is left out: {error}")
    return msgspec.structs.replace(plan, arms=tuple(arms), fallback_test=fallback), notes


def _within(arms: tuple[str, ...], max_k: int) -> tuple[list[str], list[str]]:
    beyond = [arm for arm, k in fixed(arms).items() if k > max_k]
    if not beyond:
        return list(arms), []
    largest = fixed_arm(max_k)
    kept = [largest if arm == beyond[0] and largest not in arms else arm for arm in arms]
    instead = f", {largest} stands for them" if largest not in arms else ""
    return [arm for arm in kept if arm not in beyond], [
        f"{' and '.join(beyond)} left out: the engine drafts {max_k} token{'' if max_k == 1 else 's'} at most{instead}"
    ]
