"""What makes the figures of a rehearsal doubtful, and what it can't tell: sentences for whoever is to trust them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from store.rehearsal.plan import ADAPTIVE, PROPOSED, WITHOUT, fixed_arm
from store.rehearsal.reading import PassRead
from store.rehearsal.records import Rehearsal
from store.rehearsal.result_records import Made, PartFigures

ONE_PASS: Final = "one pass: nothing promised; how far a repeat would differ is not known"

LAG_SHARE: Final = 0.1
"""A generator whose p99 lag is a larger share of an arm's median time to first token is in the way."""

LAG_SECONDS: Final = 0.02
"""Below this nobody would notice it."""

OTHERS_SHARE: Final = 0.01


def warnings(passes: Sequence[PassRead], made: Sequence[Made], parts: Sequence[PartFigures]) -> list[str]:
    """Each names what is wrong and what to do about it."""
    return [*_late(made, parts), *_others(passes, made), *_lost(made), *_unseen(parts), *_failed(parts)]


def _failed(parts: Sequence[PartFigures]) -> list[str]:
    return [
        f"{part.arm}: {sum(part.errors.values())} of {part.requests} requests failed; its speedup is of the rest"
        for part in parts
        if part.phase is None and part.workload is None and part.errors
    ]


def _late(made: Sequence[Made], parts: Sequence[PartFigures]) -> list[str]:
    whole = {part.arm: part for part in parts if part.phase is None and part.workload is None}
    found = []
    for arm in dict.fromkeys(one.arm for one in made):
        lags = [one.lag for one in made if one.arm == arm and one.lag is not None]
        first = whole[arm].ttft
        if not lags or first is None:
            continue
        late = max(lag.p99 for lag in lags)
        if late > max(LAG_SECONDS, LAG_SHARE * first.p50):
            found.append(
                f"{arm}: the load generator sent requests {late * 1000:.0f} ms late (p99), which is in every latency; "
                "give it a core of its own, or lower the rates"
            )
    return found


def _others(passes: Sequence[PassRead], made: Sequence[Made]) -> list[str]:
    begun = {one.made.number: one.made.others for one in passes}
    served = [one for one in made if one.others > OTHERS_SHARE or begun[one.number]]
    if not served:
        return []
    worst = max(served, key=lambda one: one.others)
    return [
        f"other clients were served in {len(served)} of {len(made)} passes, at most {worst.others:.0%} of the "
        f"sequence-steps ({worst.arm}, repeat {worst.repeat}): arms did not meet the same load; rehearse when all is "
        "quiet"
    ]


def _lost(made: Sequence[Made]) -> list[str]:
    lost = sum(one.frames_lost for one in made)
    return [f"{lost} frames of the engine's records were lost: busy tokens/s and α lack them"] if lost else []


def _unseen(parts: Sequence[PartFigures]) -> list[str]:
    empty = [
        part.arm for part in parts
        if part.phase is None and part.workload is None and part.output_tokens and part.busy is None
    ]  # fmt: skip
    return [f"{arm}: answered, and no step of its engine is in the records" for arm in empty]


def unknown(rehearsal: Rehearsal, arms: Sequence[str], made: Sequence[Made], planned: int) -> list[str]:
    """What this rehearsal leaves open."""
    plan = rehearsal.plan
    found = []
    if len(made) < planned:
        remedy = ": `specdeck rehearse --resume` makes them" if rehearsal.ended is None else ""
        found.append(f"{planned - len(made)} of {planned} passes were not made{remedy}")
    if max(len([one for one in made if one.arm == arm]) for arm in arms) < 2:
        found.append(ONE_PASS)
    if WITHOUT not in arms:
        found.append(
            "an engine without speculation was not measured: gains are over "
            + ("K = 0, which still pays for its drafter" if fixed_arm(0) in arms else "the arm that drafts least")
        )
    for arm in (PROPOSED, ADAPTIVE):
        if arm in plan.arms and arm not in arms:
            found.append(
                f"{arm} was not tried" + (": it has no repeat after the survey" if _all_survey(rehearsal) else "")
            )
    if plan.fallback_test and rehearsal.fallback is None:
        found.append("the fallback test was not made")
    return found


def _all_survey(rehearsal: Rehearsal) -> bool:
    return rehearsal.plan.repeats <= rehearsal.plan.survey
