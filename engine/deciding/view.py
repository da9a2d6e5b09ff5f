"""One engine at one moment, worked out: who may draft how much, what is known of it, and what it brings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.deciding.estimates import Estimates, WorkloadEstimate
from engine.deciding.knowledge import Knowledge, knowledge
from engine.deciding.memory import Memory, WorkloadMemory
from engine.deciding.objective import Objective, Prospects
from engine.deciding.settings import DecidingSettings
from engine.policy import PolicyState, WorkloadPolicy
from engine.schedule import lookup, parse_schedule
from engine.step_time.columns import Ints


@dataclass(frozen=True)
class View:
    """Workloads by their place in `estimates.workloads`; arrays of that length."""

    settings: DecidingSettings
    estimates: Estimates
    policies: tuple[WorkloadPolicy, ...]
    """In force, or what would be if advice were followed."""
    lengths: Ints
    """K of each, before schedule and cap."""
    most: Ints
    """(L,): what schedule, cap and start-up maximum leave at each load."""
    known: tuple[Knowledge, ...]
    prospects: Prospects
    objective: Objective | None
    """None while step times are not known well enough to say anything."""

    @property
    def now(self) -> float:
        return self.estimates.ts

    @property
    def batch(self) -> float:
        """n: mean decode rows of a step lately. 0 where there were none."""
        loads = self.estimates.loads
        return float(loads.steps @ loads.batch / max(loads.steps.sum(), 1.0))

    def seen(self, place: int) -> WorkloadEstimate:
        return self.estimates.workloads[place]

    def present(self, place: int) -> bool:
        """Whether it has had rows lately."""
        return bool((self.estimates.loads.rows[:, place] > 0).any())

    def usual(self, k: int) -> int:
        """What is left of a K at the commonest load."""
        return min(k, int(self.most[0])) if len(self.most) else k

    def reach(self, place: int) -> int:
        """The longest draft that schedule and cap allow it at any load it has had lately."""
        here = self.estimates.loads.rows[:, place] > 0
        return int(self.most[here].max()) if here.any() else 0

    def executed(self, place: int) -> int:
        """The longest draft that it was asked for lately."""
        return min(int(self.lengths[place]), self.reach(place))

    def with_length(self, place: int, k: int) -> Ints:
        lengths = self.lengths.copy()
        lengths[place] = k
        return lengths


def acting(policy: PolicyState) -> bool:
    """Whether decisions of tier 2 are carried out."""
    return policy.policy.mode == "schedule" or (policy.policy.mode == "adaptive" and policy.policy.act is not False)


def idle(policy: PolicyState) -> bool:
    """Whether nobody may draft, so that there is nothing to decide."""
    return policy.policy.mode == "off" or policy.fallback


def policy_of(memory: Memory, policy: PolicyState, name: str) -> WorkloadPolicy:
    """What holds for a workload, or would if advice were followed."""
    own = policy.workloads.get(name, WorkloadPolicy())
    if acting(policy):
        return own
    advised = memory.shadow.get(name, WorkloadPolicy())
    return WorkloadPolicy(k=advised.k, lane=own.lane, fallback=advised.fallback)


def take_view(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> View:
    policy, workloads = estimates.policy, estimates.workloads
    policies = tuple(policy_of(memory, policy, one.name) for one in workloads)
    lengths = np.array([_length(policy, one, estimates.max_k) for one in policies], dtype=np.int64)
    most = _most(estimates)
    asked = lengths if acting(policy) else np.array([_unadvised(policy, one, estimates.max_k) for one in policies])
    known = tuple(
        knowledge(
            settings, memory.workloads.get(one.name, WorkloadMemory()), one,
            _executed(int(asked[place]), most, estimates.loads.rows[:, place]), estimates.ts,
        )
        for place, one in enumerate(workloads)
    )  # fmt: skip
    shape = (len(workloads), estimates.max_k + 1)
    prospects = Prospects(
        np.array([one.expected for one in known]).reshape(shape),
        np.array([one.verified for one in known]).reshape(shape),
    )
    objective = Objective.of(estimates.loads, estimates.model, most, estimates.max_k, estimates.fixed_batch_k)
    return View(settings, estimates, policies, lengths, most, known, prospects, objective)


def executed_length(memory: Memory, estimates: Estimates, place: int) -> int:
    """The longest draft that a workload was asked for lately, whatever is advised."""
    policy = estimates.policy
    own = policy.workloads.get(estimates.workloads[place].name, WorkloadPolicy())
    k = _length(policy, own, estimates.max_k) if acting(policy) else _unadvised(policy, own, estimates.max_k)
    return 0 if idle(policy) else _executed(k, _most(estimates), estimates.loads.rows[:, place])


def _executed(k: int, most: Ints, rows: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    here = rows > 0
    return min(k, int(most[here].max())) if here.any() else 0


def _length(policy: PolicyState, own: WorkloadPolicy, max_k: int) -> int:
    if own.fallback or own.lane == "vanilla":
        return 0
    return max_k if own.k is None or policy.policy.mode != "adaptive" else min(own.k, max_k)


def _unadvised(policy: PolicyState, own: WorkloadPolicy, max_k: int) -> int:
    """K that is executed while advice is only given."""
    return 0 if own.lane == "vanilla" else max_k


def _most(estimates: Estimates) -> Ints:
    """By `engine.policy.Resolver`: what the terms leave that hold for everybody."""
    policy, batch = estimates.policy, estimates.loads.batch
    most = np.full(len(batch), estimates.max_k, dtype=np.int64)
    if policy.policy.mode == "static" and policy.policy.k is not None:
        most = np.minimum(most, policy.policy.k)
    if policy.policy.mode in ("schedule", "adaptive") and policy.policy.schedule is not None:
        schedule = parse_schedule(policy.policy.schedule)
        most = np.minimum(most, [lookup(schedule, max(int(running), 1)) for running in batch])
    return most if policy.cap is None else np.minimum(most, policy.cap)
