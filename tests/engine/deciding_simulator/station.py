"""What a station does with it once a second: observe, decide, carry out. And the journal that tests read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from engine.deciding.decide import decide
from engine.deciding.decisions import Decision, Score
from engine.deciding.estimates import Estimates
from engine.deciding.memory import Memory
from engine.deciding.observer import ObservedRows, ObservedSteps, Observer
from engine.deciding.settings import DecidingSettings
from engine.frames import CAUSE_CODE
from engine.policy import PolicyState, ProbeOrder, Resolver
from tests.engine.deciding_simulator.simulated import Simulated, Stretch
from tests.engine.deciding_simulator.step_times import KeptStepTimes

Array = npt.NDArray[Any]


@dataclass
class Journal:
    decisions: list[Decision] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    orders: list[tuple[float, ProbeOrder]] = field(default_factory=list)
    steps_at: dict[int, int] = field(default_factory=dict)
    """Decision id → steps of its workload when it was made."""


class Station:
    """Args:
    refit_s: seconds between two fits of the step-time model.
    through_bytes: store and read the memory at every tick, as a restarted station would.
    """

    def __init__(
        self, engine: Simulated, *, seed: int = 0, settings: DecidingSettings | None = None, fixed: bool = False,
        times: KeptStepTimes | None = None, refit_s: float = 600.0, through_bytes: bool = False,
    ) -> None:  # fmt: skip
        self.engine, self.settings = engine, settings or DecidingSettings()
        self.journal = Journal()
        self.memory = Memory(seed=seed)
        self.estimates: Estimates | None = None
        self._observer = Observer("boot", "version", engine.max_k, fixed, self.settings)
        self._names = [one.name for one in engine.workloads]
        self._times = times or KeptStepTimes(fixed)
        self._refit_s, self._refitted = refit_s, 0.0
        self._model = self._times.model() if times is not None else None
        self._stretches: list[Stretch] = []
        self._through_bytes = through_bytes

    def see(self, stretch: Stretch) -> None:
        self._stretches.append(stretch)
        self._times.add(stretch)

    def tick(self) -> None:
        now = self.engine.now
        if self._stretches:
            self._observer.add(*_observed(self._stretches), self._names)
            self._stretches.clear()
        if now - self._refitted >= (self._refit_s if self._model is not None else 30.0):
            self._refitted, self._model = now, self._times.model()
        state = self.engine.drafting.resolver.state
        self.estimates = self._observer.estimates(now, state, self._model)
        if self._through_bytes:
            self.memory = msgspec.json.decode(msgspec.json.encode(self.memory), type=Memory)
        outcome = decide(self.settings, self.memory, self.estimates)
        self.memory = outcome.memory
        steps = {one.name: one.steps for one in self.estimates.workloads}
        for made in outcome.decisions:
            self.journal.decisions.append(made)
            self.journal.steps_at[made.id] = steps[made.workload]
            if made.executed:
                state = msgspec.structs.replace(
                    state, version=state.version + 1, workloads={**state.workloads, made.workload: made.after}
                )
        self.set_policy(state)
        if outcome.probe is not None:
            self.engine.drafting.probing.give("station", outcome.probe)
            self.journal.orders.append((now, outcome.probe))
        self.journal.scores += outcome.scores

    def set_policy(self, state: PolicyState) -> None:
        if state is not self.engine.drafting.resolver.state:
            self.engine.drafting.resolver = Resolver(state, self.engine.max_k)


def _observed(stretches: list[Stretch]) -> tuple[ObservedSteps, ObservedRows]:
    steps = ObservedSteps(
        number=np.concatenate([one.number + np.arange(len(one.ts)) for one in stretches]),
        ts=np.concatenate([one.ts for one in stretches]),
        duration_ms=np.concatenate([one.duration_ms for one in stretches]),
        probe=[one.probe for one in stretches for _ in range(len(one.ts))],
    )
    columns: dict[str, list[Array]] = {name: [] for name in ObservedRows.__dataclass_fields__}
    first = 0
    for one in stretches:
        s, n = one.drafted.shape
        columns["step"].append(np.repeat(np.arange(first, first + s), n))
        for name in ("workload", "sequence", "k_asked", "limit"):
            columns[name].append(np.tile(getattr(one, name), s))
        for name in ("drafted", "accepted", "emitted"):
            columns[name].append(getattr(one, name).ravel())
        before = one.emitted.cumsum(axis=0) - one.emitted
        columns["context"].append((one.context + before).ravel())
        columns["cause"].append(_causes(one).ravel())
        first += s
    return steps, ObservedRows(**{name: np.concatenate(parts) for name, parts in columns.items()})


def _causes(one: Stretch) -> Array:
    full = np.where(one.k_asked == 0, CAUSE_CODE["none"], CAUSE_CODE["full"])
    return np.where(one.drafted < one.k_asked, CAUSE_CODE["no_proposal"], full)
