"""The results of a rehearsal, computed from its folder and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from store.rehearsal.arm_passes import by_arm
from store.rehearsal.arms import baseline_of
from store.rehearsal.doubts import unknown, warnings
from store.rehearsal.holding import holding
from store.rehearsal.parts import all_parts
from store.rehearsal.plan import Phase, Plan, fixed_k
from store.rehearsal.reading import PassRead, RehearsalError, read_passes, read_rehearsal
from store.rehearsal.records import Rehearsal
from store.rehearsal.result_records import Lag, Made, PhaseSpan, RehearsalResult
from store.rehearsal.spec_tax import spec_tax


def results(folder: Path) -> RehearsalResult:
    """Of the passes that came to their end so far.

    Raises:
        RehearsalError: no rehearsal, a broken file, or no pass yet.
    """
    rehearsal = read_rehearsal(folder)
    passes = read_passes(folder, rehearsal)
    if not passes:
        raise RehearsalError(f"{folder}: no pass came to its end yet: resume the rehearsal")
    return of_passes(rehearsal, passes)


def of_passes(rehearsal: Rehearsal, passes: Sequence[PassRead]) -> RehearsalResult:
    plan = rehearsal.plan
    arms = by_arm(passes, plan.arms)
    phases = spans(plan.phases)
    baseline = baseline_of(list(arms))
    made = [_made(one) for one in passes]
    parts = list(all_parts(arms, baseline, plan, phases))
    held = list(holding(arms, plan.survey, len(phases)))
    planned = passes_planned(plan)
    return RehearsalResult(
        id=rehearsal.id,
        plan=plan,
        host=rehearsal.host,
        scale=rehearsal.scale,
        started=rehearsal.started,
        ended=rehearsal.ended,
        fingerprint=rehearsal.fingerprint,
        baseline=baseline or next(iter(arms)),
        arms=list(arms),
        phases=phases,
        passes=made,
        passes_planned=planned,
        parts=parts,
        spec_tax=spec_tax(arms),
        holding=held,
        proposal=rehearsal.proposal,
        fallback=rehearsal.fallback,
        warnings=warnings(passes, made, parts),
        unknown=unknown(rehearsal, list(arms), made, planned),
        notes=[*rehearsal.notes, *dict.fromkeys(note for one in passes for note in one.made.notes)],
    )


def spans(phases: Sequence[Phase]) -> list[PhaseSpan]:
    """Phases by their place: two of one name are told apart by it."""
    times = Counter(phase.name for phase in phases)
    moments = list(accumulate((phase.seconds for phase in phases), initial=0.0))
    return [
        PhaseSpan(label=phase.name if times[phase.name] == 1 else f"{phase.name} ({place})", start=start, end=end)
        for place, (phase, (start, end)) in enumerate(zip(phases, pairwise(moments), strict=True), 1)
    ]


def passes_planned(plan: Plan) -> int:
    """Fixed arms and the one without speculation meet every repeat, the others those after the survey."""
    surveyed = sum(arm == "without" or fixed_k(arm) is not None for arm in plan.arms)
    later = max(0, plan.repeats - plan.survey)
    return surveyed * plan.repeats + (len(plan.arms) - surveyed) * later


def _made(one: PassRead) -> Made:
    late = [request.sent - request.at for request in one.outcomes if request.sent is not None]
    lag = None
    if late:
        lag = Lag(p99=float(np.percentile(late, 99, method="inverted_cdf")), max=max(late))
    return Made(
        number=one.made.number,
        arm=one.made.arm,
        repeat=one.made.repeat,
        stage=one.made.stage,
        lag=lag,
        others=one.digest.others,
        frames_lost=one.digest.frames_lost,
    )
