"""Holds decisions against what happened: a prediction that nobody checks is worth nothing."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from engine.deciding.decisions import Decision, Score
from engine.deciding.estimates import Totals
from engine.deciding.memory import Mark, Memory, OpenDecision
from engine.deciding.view import View
from engine.step_time.columns import Ints

_ENOUGH: Final = 0.25
"""Part of `score_steps` below which a stretch is too short to say anything."""
_OTHER_LOAD: Final = 0.25
"""Change of the batch, relative, beyond which tokens/s before and after tell of the load and not of K."""


def opened(view: View, memory: Memory, decision: Decision, before: Ints, after: Ints) -> Memory:
    """Remember a decision until enough steps have passed. `before`, `after`: the K of all workloads."""
    if view.objective is None:
        return memory
    names = [one.name for one in view.estimates.workloads]
    totals = view.estimates.totals
    pending = OpenDecision(
        id=decision.id,
        ts=decision.ts,
        workload=decision.workload,
        executed=decision.executed,
        predicted=decision.predicted or 0.0,
        before_rate=_rate_before(view, memory),
        batch=view.batch,
        expected_before=view.objective.rate(before, view.prospects),
        lengths_before=dict(zip(names, before.tolist(), strict=True)),
        lengths_after=dict(zip(names, after.tolist(), strict=True)),
        mark=Mark(totals.steps, totals.emitted, totals.busy_ms),
    )
    return replace(memory, open=(*memory.open, pending))


def scored(view: View, memory: Memory, closing: bool = False) -> tuple[Memory, list[Score]]:
    """Score what has had its steps. `closing`: another change is being made, so that later steps tell nothing of the
    executed ones before it."""
    waiting, scores = [], []
    for pending in memory.open:
        due = view.estimates.totals.steps - pending.mark.steps >= view.settings.score_steps
        if not due and not (closing and pending.executed):
            waiting.append(pending)
            continue
        score = _score(view, pending)
        if score is not None:
            scores.append(score)
    return replace(memory, open=tuple(waiting)), scores


def _score(view: View, pending: OpenDecision) -> Score | None:
    """None where too little is known to say anything."""
    if view.objective is None:
        return None
    totals = view.estimates.totals
    before, after = (_lengths(view, lengths) for lengths in (pending.lengths_before, pending.lengths_after))
    expected = view.objective.rate(before, view.prospects)
    if pending.executed:
        rate = _rate(pending.mark, totals, _ENOUGH * view.settings.score_steps)
        moved = abs(view.batch / pending.batch - 1) > _OTHER_LOAD
        if rate is None or pending.before_rate is None or moved:
            return None
        observed = rate / pending.before_rate / (expected / pending.expected_before) - 1
    else:
        observed = view.objective.rate(after, view.prospects) / expected - 1
    return Score(
        decision=pending.id,
        ts=view.now,
        workload=pending.workload,
        predicted=pending.predicted,
        observed=observed,
        basis="executed" if pending.executed else "estimated",
        steps=totals.steps - pending.mark.steps,
    )


def _lengths(view: View, lengths: dict[str, int]) -> Ints:
    return np.array([lengths.get(one.name, 0) for one in view.estimates.workloads], dtype=np.int64)


def _rate_before(view: View, memory: Memory) -> float | None:
    """Over the latest stretch without a change that is long enough."""
    enough = _ENOUGH * view.settings.score_steps
    rates = (_rate(mark, view.estimates.totals, enough) for mark in reversed(memory.marks))
    return next((rate for rate in rates if rate is not None), None)


def _rate(since: Mark, totals: Totals, enough: float) -> float | None:
    """Tokens per busy second since then."""
    ms = totals.busy_ms - since.busy_ms
    if totals.steps - since.steps < enough or ms <= 0:
        return None
    return 1000 * (totals.emitted - since.emitted) / ms
