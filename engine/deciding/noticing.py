"""Brings the memory up to a new picture: who changed, what was measured, what probes took, whom to forget."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.deciding.estimates import Estimates, WorkloadEstimate
from engine.deciding.knowledge import remember
from engine.deciding.memory import Mark, Memory, OutstandingProbe, WorkloadMemory
from engine.deciding.settings import DecidingSettings
from engine.deciding.view import executed_length, idle, policy_of

_MOST_MARKS: Final = 3


def noticed(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> Memory:
    """The memory after a look at `estimates`."""
    memory = _same_engine(settings, memory, estimates)
    memory = _with_time(settings, memory, estimates)
    memory = _with_probe(settings, memory, estimates)
    workloads = {}
    for place, seen in enumerate(estimates.workloads):
        before = memory.workloads.get(seen.name)
        after = _noticed_workload(settings, memory, estimates, place, seen)
        if before is not None and after.changed_steps != before.changed_steps:
            memory = replace(memory, changed_steps=estimates.totals.steps, marks=())
        workloads[seen.name] = after
    shadow = {name: policy for name, policy in memory.shadow.items() if name in workloads}
    return _with_marks(settings, replace(memory, workloads=workloads, shadow=shadow), estimates)


def _same_engine(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> Memory:
    """Sums start again with an engine process; what was learned stays, unless the model is another."""
    if memory.version not in (None, estimates.version):
        return Memory(
            seed=memory.seed,
            boot=estimates.boot,
            version=estimates.version,
            next_probe=memory.next_probe,
            next_decision=memory.next_decision,
        )
    if memory.boot == estimates.boot:
        return memory
    workloads = {
        name: replace(one, changed_steps=0, raised_steps=None, below_since=None)
        for name, one in memory.workloads.items()
    }
    return replace(
        memory, boot=estimates.boot, version=estimates.version, workloads=workloads, ordered=None, changed_steps=0,
        probed_steps=0, counted_busy_ms=0.0, counted_probe_ms=0.0, marks=(), open=(),
    )  # fmt: skip


def _with_time(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> Memory:
    """Probes earn their share of the time that the engine works, no more of it ahead than for the longest pause."""
    totals = estimates.totals
    earned = settings.probe_share * (totals.busy_ms - memory.counted_busy_ms)
    left = memory.budget_ms + earned - (totals.probe_ms - memory.counted_probe_ms)
    most = settings.probe_share * settings.longest_pause_s * 1000
    return replace(memory, budget_ms=min(left, most), counted_busy_ms=totals.busy_ms, counted_probe_ms=totals.probe_ms)


def _with_probe(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> Memory:
    """Whether the block that was ordered is over, or given up."""
    ordered, totals = memory.ordered, estimates.totals
    if ordered is None:
        return memory
    made = totals.probe_steps - ordered.probe_steps
    if made < ordered.order.steps and totals.steps - ordered.steps <= _patience(settings, ordered):
        return memory
    return replace(memory, ordered=None, probed_steps=totals.steps if made else memory.probed_steps)


def _patience(settings: DecidingSettings, ordered: OutstandingProbe) -> int:
    return ordered.order.wait + ordered.order.steps + settings.probe_patience_steps


def _noticed_workload(
    settings: DecidingSettings, memory: Memory, estimates: Estimates, place: int, seen: WorkloadEstimate
) -> WorkloadMemory:
    policy = policy_of(memory, estimates.policy, seen.name)
    known = memory.workloads.get(seen.name)
    if known is None:
        known = WorkloadMemory(k=policy.k, fallback=policy.fallback, changed_steps=seen.steps)
    elif (known.k, known.fallback) != (policy.k, policy.fallback):
        known = replace(
            known, k=policy.k, fallback=policy.fallback, changed_steps=seen.steps, raised_steps=None, below_since=None
        )
    known = replace(known, last_seen=seen.last_seen, below_since=None if idle(estimates.policy) else known.below_since)
    return remember(settings, known, seen, executed_length(memory, estimates, place), estimates.ts)


def _with_marks(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> Memory:
    """A mark each dwell since the last change, so that there is a stretch to hold the next one against."""
    totals, marks = estimates.totals, memory.marks
    if marks and totals.steps - marks[-1].steps < settings.score_steps:
        return memory
    mark = Mark(totals.steps, totals.emitted, totals.busy_ms)
    return replace(memory, marks=(*marks, mark)[-_MOST_MARKS:])
