"""Runs: an engine under a policy for so many seconds, with or without a station, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.deciding.settings import DecidingSettings
from engine.policy import PolicyState
from engine.records import PolicyMode
from tests.engine.deciding_simulator.simulated import Simulated, Stretch, drafting
from tests.engine.deciding_simulator.station import Station
from tests.engine.deciding_simulator.step_times import KeptStepTimes
from tests.engine.deciding_simulator.surface import Surface
from tests.engine.deciding_simulator.traffic import Workload

Array = npt.NDArray[Any]

MAX_K: Final = 4
ANY_LOAD: Final = PolicyMode(mode="adaptive", schedule=[(1, 64, MAX_K)], act=True)
ADVISE: Final = PolicyMode(mode="adaptive", schedule=[(1, 64, MAX_K)], act=False)

Seen = Callable[[Stretch], None]
Before = Callable[[Station], None]


@dataclass
class Blocks:
    """Tokens and seconds of work in each block of time."""

    seconds: float
    tokens: dict[int, float] = field(default_factory=dict)
    busy: dict[int, float] = field(default_factory=dict)

    def add(self, stretch: Stretch) -> None:
        block = int(stretch.ts[-1] // self.seconds)
        self.tokens[block] = self.tokens.get(block, 0.0) + float(stretch.emitted.sum())
        self.busy[block] = self.busy.get(block, 0.0) + float(stretch.duration_ms.sum()) / 1000

    def rates(self) -> dict[int, float]:
        """Tokens per busy second of each block that saw a minute of work: the last one may only be a rest."""
        return {
            block: self.tokens[block] / busy for block, busy in self.busy.items() if busy >= min(60, self.seconds / 2)
        }


def state(mode: PolicyMode, **fields: Any) -> PolicyState:
    return PolicyState(version=1, policy=mode, **fields)


def run_fixed(
    workloads: Sequence[Workload], k: int, seconds: float, *, seed: int = 0, surface: Surface | None = None,
    fixed: bool = False, block_s: float = 300.0,
) -> Blocks:  # fmt: skip
    """Every sequence at the same K throughout."""
    mode = PolicyMode(mode="static", k=k)
    engine = Simulated(workloads, drafting(state(mode), MAX_K, fixed, seed), MAX_K, surface or Surface(), seed)
    blocks = Blocks(block_s)
    while engine.now < seconds:
        stretch = engine.stretch(seconds)
        if stretch is not None:
            blocks.add(stretch)
    return blocks


def run_adaptive(
    workloads: Sequence[Workload], seconds: float, *, policy: PolicyState | None = None, seed: int = 0,
    surface: Surface | None = None, fixed: bool = False, block_s: float = 300.0, tick_s: float = 1.0,
    settings: DecidingSettings | None = None, calibrated: bool = True, seen: Seen | None = None,
    before: Before | None = None, hints: bool = False, through_bytes: bool = False, refit_s: float = 600.0,
) -> tuple[Station, Blocks]:  # fmt: skip
    """With a station that decides every `tick_s`. `seen` gets every stretch, `before` is called ahead of every tick."""
    surface = surface or Surface()
    engine = Simulated(
        workloads, drafting(policy or state(ANY_LOAD), MAX_K, fixed, seed), MAX_K, surface, seed, hints=hints
    )
    times = KeptStepTimes() if calibrated else None
    if times is not None:
        times.calibrate(surface, MAX_K, seed)
    station = Station(
        engine, seed=seed, settings=settings, fixed=fixed, times=times, through_bytes=through_bytes, refit_s=refit_s
    )
    blocks, tick = Blocks(block_s), tick_s
    while engine.now < seconds:
        stretch = engine.stretch(tick)
        if stretch is not None:
            blocks.add(stretch)
            station.see(stretch)
            if seen is not None:
                seen(stretch)
        if engine.now >= tick:
            if before is not None:
                before(station)
            station.tick()
            tick = (engine.now // tick_s + 1) * tick_s
    return station, blocks


def against_best(adaptive: Blocks, arms: dict[int, Blocks]) -> tuple[int, list[float]]:
    """The arm that is best on odd blocks, and adaptive's rate over that arm's on each even one."""
    rates = {k: arm.rates() for k, arm in arms.items()}
    mine = adaptive.rates()
    common = set(mine).intersection(*rates.values())
    odd, even = ([block for block in sorted(common) if block % 2 == side] for side in (1, 0))
    best = max(rates, key=lambda k: float(np.mean([np.log(rates[k][block]) for block in odd])))
    return best, [mine[block] / rates[best][block] for block in even]
