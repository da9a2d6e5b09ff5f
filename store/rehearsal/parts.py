"""The figures of each arm by phase and workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from store.counts import Joint, SequenceTotals
from store.metrics import divided, figures
from store.rehearsal.arm_passes import ArmPasses
from store.rehearsal.digest import StepPart
from store.rehearsal.estimates import level, of_ratios, paired
from store.rehearsal.plan import Deadline, Plan
from store.rehearsal.request_figures import (
    arrival_speedup,
    completion_seconds,
    e2e,
    failure,
    missed,
    percentiles,
    tokens,
    tpot,
    ttft,
)
from store.rehearsal.result_records import Drafting, PartFigures, PhaseSpan

_JOINT: Final = tuple(Joint.__dataclass_fields__)
_TOTALS: Final = tuple(SequenceTotals.__dataclass_fields__)


def all_parts(
    arms: Mapping[str, ArmPasses], baseline: str | None, plan: Plan, phases: Sequence[PhaseSpan]
) -> Iterator[PartFigures]:
    """Arm by arm: the whole pass, then each phase; of each all workloads together, then each."""
    deadlines = {mix.name: mix.deadline for mix in plan.mix}
    against = arms.get(baseline) if baseline is not None else None
    for arm in arms.values():
        for phase in (None, *range(len(phases))):
            for workload in (None, *deadlines):
                yield _part(arm, against, phase, workload, phases, deadlines)


def rates(
    arm: ArmPasses,
    phase: int | None,
    workload: str | None,
    phases: Sequence[PhaseSpan],
    deadlines: Mapping[str, Deadline],
) -> tuple[dict[int, float], dict[int, float]]:
    """Completion throughput and goodput of each repeat, tokens/s. Workloads of a phase are over the same seconds, so
    that they add up."""
    start, end = (phases[0].start, phases[-1].end) if phase is None else (phases[phase].start, phases[phase].end)
    whole, good = {}, {}
    for repeat, requests in arm.requests(phase, None):
        seconds = completion_seconds(requests, start, end)
        ours = [one for one in requests if workload in (None, one.workload)]
        if ours and seconds > 0:
            whole[repeat] = tokens(ours) / seconds
            good[repeat] = tokens(one for one in ours if not missed(one, deadlines[one.workload])) / seconds
    return whole, good


def _part(
    arm: ArmPasses,
    against: ArmPasses | None,
    phase: int | None,
    workload: str | None,
    phases: Sequence[PhaseSpan],
    deadlines: Mapping[str, Deadline],
) -> PartFigures:
    by_repeat = dict(arm.requests(phase, workload))
    requests = [one for repeat in by_repeat.values() for one in repeat]
    whole, good = rates(arm, phase, workload, phases, deadlines)
    busy = arm.busy(phase, workload)
    steps = [
        part
        for one in arm.repeats.values()
        if (part := one.digest.parts.get((phase, workload))) is not None
    ]  # fmt: skip
    compared = against if against is not None and against.arm != arm.arm else None
    return PartFigures(
        arm=arm.arm,
        phase=phase,
        workload=workload,
        repeats=len(arm.repeats),
        requests=len(requests),
        errors=dict(sorted(Counter(kind for one in requests if (kind := failure(one)) is not None).items())),
        misses=sum(missed(one, deadlines[one.workload]) for one in requests),
        output_tokens=tokens(requests),
        throughput=level(whole),
        goodput=level(good),
        busy=level(busy),
        mean_running=divided(sum(one.running_seconds for one in steps), sum(one.seconds for one in steps)),
        e2e=percentiles(map(e2e, requests)),
        ttft=percentiles(map(ttft, requests)),
        tpot=percentiles(map(tpot, requests)),
        waiting=percentiles(
            arm.repeats[repeat].digest.waiting.get(one.id) for repeat, ones in by_repeat.items() for one in ones
        ),
        drafting=drafting(steps),
        speedup=None if compared is None else of_ratios(speedups(compared, arm, phase, workload)),
        gain=None if compared is None else paired(busy, compared.busy(phase, workload)),
        goodput_gain=(
            None  # a repeat in which nothing was good has no ratio, and the others alone would flatter
            if compared is None or not all(good.values())
            else paired(good, rates(compared, phase, workload, phases, deadlines)[1])
        ),
    )


def speedups(baseline: ArmPasses, arm: ArmPasses, phase: int | None, workload: str | None = None) -> dict[int, float]:
    """Equal-arrival speedup of each repeat that both have."""
    theirs = dict(baseline.requests(phase, workload))
    found = {
        repeat: arrival_speedup(theirs[repeat], requests)
        for repeat, requests in arm.requests(phase, workload)
        if repeat in theirs
    }
    return {repeat: ratio for repeat, ratio in found.items() if ratio is not None}


def drafting(parts: Sequence[StepPart]) -> Drafting | None:
    """The store's figures of the rows of several passes; None without decode rows. No sequence is in two passes."""
    if not parts:
        return None
    joint = Joint(*(np.concatenate([getattr(one.joint, name) for one in parts]) for name in _JOINT))
    totals = SequenceTotals(*(np.concatenate([getattr(one.sequences, name) for one in parts]) for name in _TOTALS))
    found = figures(joint, totals, seconds=None, window=None)
    if not found.decode_rows:
        return None
    return Drafting(
        draft_steps=found.steps,
        decode_rows=found.decode_rows,
        alpha=found.alpha,
        alpha_low=found.alpha_low,
        alpha_high=found.alpha_high,
        mean_acceptance_length=found.mean_acceptance_length,
        waste_ratio=found.waste_ratio,
        k_mix=found.k_histogram,
        few=found.few,
    )
