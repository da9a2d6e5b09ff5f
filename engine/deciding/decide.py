"""The controller: estimates in, decisions and probe orders out. Deterministic, without a clock or a state of its own.

At most one change a call, so that each can be held against what happened: recoveries first, then tier 2, then tier 1.
Whoever calls carries out what is marked `executed` before the next call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from engine.deciding.decisions import Action, Decision, Score
from engine.deciding.estimates import Estimates
from engine.deciding.marginal import Judged
from engine.deciding.memory import Memory
from engine.deciding.noticing import noticed
from engine.deciding.plan import Move
from engine.deciding.probing import next_probe
from engine.deciding.scoring import opened, scored
from engine.deciding.settings import DecidingSettings
from engine.deciding.tier1 import basis_of, changed, next_k
from engine.deciding.tier2 import next_fallback, next_recovery, turned_off, with_clocks
from engine.deciding.view import View, acting, idle, take_view
from engine.policy import ProbeOrder, WorkloadPolicy


class Outcome(NamedTuple):
    """What one look leads to."""

    memory: Memory
    decisions: list[Decision]
    probe: ProbeOrder | None
    """To be sent to the engine once; it carries it out when it can."""
    scores: list[Score]


def decide(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> Outcome:
    """One look, about once a second."""
    stale = _reset(memory, estimates)
    memory = noticed(settings, memory, estimates)
    if stale:
        return Outcome(*_started_again(memory, estimates, stale), None, [])
    if idle(estimates.policy) or not estimates.max_k or not estimates.workloads:
        return Outcome(replace(memory, ordered=None), [], None, [])
    view = take_view(settings, memory, estimates)
    memory = with_clocks(view, memory)
    memory, scores = scored(view, memory)
    found = _next(view, memory)
    if found is None:
        memory, probe = next_probe(view, memory)
        return Outcome(memory, [], probe, scores)
    if found.executed:
        memory, closed = scored(view, memory, closing=True)
        scores += closed
    memory = _carried_out(view, memory, found)
    return Outcome(memory, [found], None, scores)


def _next(view: View, memory: Memory) -> Decision | None:
    """The change to make now. None while a probe is under way or has just ended."""
    clear = view.estimates.totals.steps - memory.probed_steps >= view.settings.probe_clear_steps
    if memory.ordered is not None or (memory.probed_steps and not clear):
        return None
    recovery = next_recovery(view, memory)
    if recovery is not None:
        return _judged(view, memory, recovery, "recover")
    fallback = next_fallback(view, memory)
    if fallback is not None:
        return _judged(view, memory, fallback, "fallback")
    move = next_k(view, memory)
    return None if move is None else _moved(view, memory, move)


def _moved(view: View, memory: Memory, move: Move) -> Decision:
    names = [one.name for one in view.estimates.workloads]
    others = {
        names[place]: int(move.lengths[place])
        for place in np.flatnonzero(move.lengths != view.lengths)
        if place != move.workload
    }
    before = view.policies[move.workload]
    made = _decision(view, memory, move.workload, "k", replace(before, k=move.k), move.k)
    known = view.known[move.workload]
    return replace(
        made,
        predicted=move.gain,
        basis=basis_of(view, move.workload, view.usual(move.k)),
        hazards=known.hazards,
        sequences=view.seen(move.workload).window.sequences,
        others=others,
    )


def _judged(view: View, memory: Memory, judged: Judged, action: Action) -> Decision:
    place, before = judged.workload, view.policies[judged.workload]
    k = 0 if action == "fallback" else judged.k
    after = replace(before, k=None if action == "fallback" else k, fallback=action == "fallback")
    made = _decision(view, memory, place, action, after, k)
    assert view.objective is not None  # nothing is judged without
    rate = view.objective.rate(view.lengths, view.prospects)
    gain = (
        judged.gain if action == "recover" else view.objective.rate(view.with_length(place, 0), view.prospects) / rate
    )
    return replace(
        made,
        predicted=gain - 1,
        marginal=judged.gain,
        low=judged.bounds.low if judged.bounds else None,
        high=judged.bounds.high if judged.bounds else None,
        hazards=judged.hazards,
        sequences=judged.sequences,
    )


def _decision(view: View, memory: Memory, place: int, action: Action, after: WorkloadPolicy, k: int) -> Decision:
    loads = view.estimates.loads
    policy = view.estimates.policy
    tier_1 = policy.policy.mode == "adaptive" and policy.policy.act is not False
    return Decision(
        id=memory.next_decision,
        ts=view.now,
        workload=view.seen(place).name,
        action=action,
        executed=tier_1 if action == "k" else acting(policy),
        before=view.policies[place],
        after=after,
        k_before=view.usual(int(view.lengths[place])),
        k_after=view.usual(k),
        rows=float(loads.mean_rows[place]),
        batch=view.batch,
    )


def _carried_out(view: View, memory: Memory, made: Decision) -> Memory:
    """The memory once the decision holds, in fact or as advice."""
    place = next(place for place, one in enumerate(view.estimates.workloads) if one.name == made.workload)
    after = view.with_length(place, _length_after(made, view.estimates.max_k))
    memory = opened(view, memory, made, view.lengths, after)
    known, steps = memory.workloads[made.workload], view.seen(place).steps
    if made.action == "fallback":
        known = turned_off(known, steps, view.now, view.settings.shortest_pause_s)
    else:
        known = changed(view.settings, known, view.executed(place), made.after.k or 0, steps, view.now)
    memory = replace(
        memory, workloads={**memory.workloads, made.workload: known}, next_decision=memory.next_decision + 1
    )
    if not made.executed:
        return replace(memory, shadow={**memory.shadow, made.workload: made.after})
    return replace(memory, changed_steps=view.estimates.totals.steps, marks=())


def _length_after(made: Decision, max_k: int) -> int:
    if made.after.fallback:
        return 0
    return max_k if made.after.k is None else made.after.k


def _reset(memory: Memory, estimates: Estimates) -> dict[str, WorkloadPolicy]:
    """What was decided for another model version and still stands in the policy."""
    if memory.version in (None, estimates.version):
        return {}
    policies = estimates.policy.workloads if acting(estimates.policy) else memory.shadow
    return {name: one for name, one in policies.items() if one.k is not None or one.fallback}


def _started_again(
    memory: Memory, estimates: Estimates, stale: dict[str, WorkloadPolicy]
) -> tuple[Memory, list[Decision]]:
    """Let every workload draft as the schedule says until something is known of the new version."""
    made = [
        Decision(
            id=memory.next_decision + number,
            ts=estimates.ts,
            workload=name,
            action="reset",
            executed=acting(estimates.policy),
            before=before,
            after=replace(before, k=None, fallback=False),
            k_before=0 if before.fallback or before.k is None else before.k,
            k_after=estimates.max_k,
        )
        for number, (name, before) in enumerate(sorted(stale.items()))
    ]
    return replace(memory, next_decision=memory.next_decision + len(made)), made
