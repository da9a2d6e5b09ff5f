"""Draft lengths under one policy state: the terms of design §9, their minimum, and the term that gave it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from engine.policy.state import PolicyState, ProbeOrder, WorkloadPolicy, validate
from engine.records import Lane, Limit, PolicyMode
from engine.schedule import DraftSchedule, clamp, lookup, parse_schedule


class DraftLength(NamedTuple):
    """A draft length in tokens and the term that set it."""

    k: int
    limit: Limit


class Resolver:
    """Draft lengths under one state, for a scheduler whose start-up maximum is `max_k`. Immutable once made.

    Whether the batch K can move changes nothing here: where it can't the scheduler trims sequences to these lengths.
    """

    __slots__ = ("_acting", "_base", "_falls_back", "_schedule", "max_k", "state")

    def __init__(self, state: PolicyState, max_k: int) -> None:
        validate(state)
        self.state = state
        self.max_k = max_k
        mode = state.policy
        self._acting = mode.mode == "adaptive" and mode.act is not False
        self._falls_back = self._acting or mode.mode == "schedule"
        self._schedule: DraftSchedule | None = None
        if mode.mode in ("schedule", "adaptive") and mode.schedule is not None:
            self._schedule = parse_schedule(mode.schedule)
        self._base: DraftLength | None = None
        if mode.mode == "off":
            self._base = DraftLength(0, "off")
        elif mode.mode == "static":
            assert mode.k is not None  # validate() saw to it
            self._base = DraftLength(mode.k, "static")

    @property
    def version(self) -> int:
        return self.state.version

    def draft_length(self, running: int, workload: str | None, disable_speculation: bool, lane: Lane) -> DraftLength:
        """K for one sequence at a batch of `running` scheduled sequences: the minimum of its terms (design §9)."""
        own = self.state.workloads.get(workload or "untagged")
        barred = self._barred(own, disable_speculation, lane)
        if barred is not None:
            return barred
        if own is not None and own.fallback and self._falls_back:
            return DraftLength(0, "fallback")
        return self._capped(running, own)

    def probed_length(
        self, order: ProbeOrder, running: int, workload: str | None, disable_speculation: bool, lane: Lane
    ) -> DraftLength:
        """The same while the probe `order` is under way; under `deep` the longest that the sequence may be asked for.

        A probe takes the place of what it is there to question: of adaptive's own K (`deep`), of tier 2 with the K that
        it left (`recover`). It never exceeds cap, schedule or maximum, and lifts neither mode off nor hint, lane or the
        operator's fallback. Where it leaves nothing to draft the policy holds.
        """
        own = self.state.workloads.get(workload or "untagged")
        barred = self._barred(own, disable_speculation, lane)
        if barred is not None:
            return barred
        fallen = own is not None and own.fallback and self._falls_back
        if order.kind == "k0":
            return DraftLength(0, "fallback" if fallen else "probe")
        questioned = fallen if order.kind == "recover" else self._acting and not fallen
        if questioned and order.workload == (workload or "untagged"):
            k = min(order.k, self._capped(running, None).k)
            if k > 0:
                return DraftLength(k, "probe")
        return DraftLength(0, "fallback") if fallen else self._capped(running, own)

    def _barred(self, own: WorkloadPolicy | None, disable_speculation: bool, lane: Lane) -> DraftLength | None:
        """The terms that nothing lifts, first in the order of `LIMITS`."""
        if self._base is not None and self._base.limit == "off":
            return self._base
        if disable_speculation:
            return DraftLength(0, "hint")
        if lane == "vanilla" or (own is not None and own.lane == "vanilla"):
            return DraftLength(0, "lane")
        if self.state.fallback:
            return DraftLength(0, "operator")
        return None

    def _capped(self, running: int, own: WorkloadPolicy | None) -> DraftLength:
        """The terms that leave some speculation, in the order of `LIMITS`, so that a tie goes to the first."""
        terms: list[DraftLength] = []
        if self.state.cap is not None:
            terms.append(DraftLength(self.state.cap, "cap"))
        if self._acting and own is not None and own.k is not None:
            terms.append(DraftLength(own.k, "adaptive"))
        if self._schedule is not None:
            terms.append(DraftLength(lookup(self._schedule, running), "schedule"))
        if self._base is not None:
            terms.append(self._base)
        terms.append(DraftLength(self.max_k, "max"))
        return min(terms, key=lambda term: term.k)


def base_k(mode: PolicyMode, running: int, max_k: int) -> int:
    """K that a mode alone asks for at `running` scheduled sequences, before any other term and unclamped. Adaptive
    without a schedule: `max_k`, the engine's maximum.

    Raises:
        ScheduleError: a schedule that `validate` would have refused.
    """
    if mode.mode == "off":
        return 0
    if mode.mode == "static":
        return mode.k or 0
    return max_k if mode.schedule is None else lookup(parse_schedule(mode.schedule), max(running, 1))


def resolved_mode(mode: PolicyMode, max_k: int, data_parallel_size: int = 1) -> PolicyMode:
    """What an engine will do with a configured mode, and why where it differs (`reason`).

    vLLM drops a draft schedule under data parallelism (ranks with different K deadlock) and clamps K to the
    start-up maximum.
    """
    if data_parallel_size > 1 and mode.mode in ("schedule", "adaptive"):
        reason = f"data parallel size {data_parallel_size}: vLLM drops the schedule and drafts its maximum"
        return PolicyMode(mode="static", k=max_k, reason=reason)
    if mode.mode == "static" and mode.k is not None and mode.k > max_k:
        reason = f"K {mode.k} is above the engine's start-up maximum {max_k}"
        return PolicyMode(mode="static", k=max_k, reason=reason)
    if mode.schedule is not None:
        lowered, over = clamp(parse_schedule(mode.schedule), max_k)
        if over:
            reason = f"K above the engine's start-up maximum {max_k} is clamped"
            return msgspec.structs.replace(mode, schedule=list(lowered), reason=reason)
    return mode
