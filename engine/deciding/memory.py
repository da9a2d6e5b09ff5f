"""What the controller remembers from one second to the next. It can be stored and read again (msgspec)."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.policy import ProbeOrder, WorkloadPolicy

MEMORY_VERSION: Final = 1


class Remembered(msgspec.Struct, frozen=True, array_like=True):
    """A hazard as it was last measured."""

    hazard: float
    before: float
    """Of the position before it, at that time: when that moves, so has this one."""
    until: float
    """Unix seconds: believed so long, then tried again."""


class WorkloadMemory(msgspec.Struct, frozen=True):
    k: int | None = None
    """The K and …"""
    fallback: bool = False
    """… the fallback that were in force when we last looked: a change by anybody starts a dwell."""
    changed_steps: int = 0
    """Steps of the workload when either changed last."""
    raised_steps: int | None = None
    """The same, when K was raised last."""
    below_since: float | None = None
    """Since when the upper bound of the marginal gain at K = 1 has been below the limit, Unix seconds."""
    pause_s: float = 0.0
    """Pause before the next try of a higher K; 0 before the first."""
    next_try: float = 0.0
    """Unix seconds."""
    hazards: tuple[Remembered | None, ...] = ()
    """Of position 1, 2, …"""
    drafted: tuple[float, ...] = ()
    """Share of rows asked for position 1, 2, … in which the drafter filled it."""
    last_seen: float = 0.0


class OutstandingProbe(msgspec.Struct, frozen=True):
    """An order that may not have been carried out yet."""

    order: ProbeOrder
    steps: int
    """Steps of the engine when it was given, …"""
    probe_steps: int
    """… and of these, steps of probes."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Sums of the engine at a moment."""

    steps: int
    emitted: int
    busy_ms: float


class OpenDecision(msgspec.Struct, frozen=True):
    """A decision that is still to be held against what happened."""

    id: int
    ts: float
    workload: str
    executed: bool
    predicted: float
    before_rate: float | None
    """Tokens per busy second in the steps before it; None where there were too few."""
    batch: float
    """Mean decode rows of a step."""
    expected_before: float
    """R of `lengths_before` at the load of that moment: a change of load since is no merit of the decision."""
    lengths_before: dict[str, int]
    lengths_after: dict[str, int]
    mark: Mark


class Memory(msgspec.Struct, frozen=True):
    """Begin with `Memory(seed=…)`: any number; equal seeds and estimates give equal decisions."""

    seed: int = 0
    v: int = MEMORY_VERSION
    boot: str | None = None
    version: str | None = None
    workloads: dict[str, WorkloadMemory] = {}
    shadow: dict[str, WorkloadPolicy] = {}
    """What would be in force if advice were followed."""
    ordered: OutstandingProbe | None = None
    next_probe: int = 1
    next_decision: int = 1
    changed_steps: int = 0
    """Steps of the engine at the last change of anybody's K, …"""
    probed_steps: int = 0
    """… and at the end of the last probe block, as far as it was seen."""
    budget_ms: float = 0.0
    """Time that probes may still take."""
    counted_busy_ms: float = 0.0
    counted_probe_ms: float = 0.0
    """How much of the engine's time is in `budget_ms`."""
    k0_at: float = 0.0
    """When the last `k0` block was ordered, Unix seconds."""
    marks: tuple[Mark, ...] = ()
    """Since the last change, a dwell apart, oldest first."""
    open: tuple[OpenDecision, ...] = ()
