"""Makes estimates of an engine's steps as they come: what the controller needs of the live picture, and nothing else.

One observer for each engine process. Rows come with the tag they are counted under (`store.buckets`), quarantined ones
left out. Time is record time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.deciding.estimates import NOTHING_YET, Estimates, Evidence, ProbeBlock, Totals, WorkloadEstimate
from engine.deciding.positions import positions_of
from engine.deciding.settings import DecidingSettings
from engine.deciding.sliding import SlidingLoads, SlidingPositions
from engine.frames import CAUSE_CODE, LIMIT_CODE
from engine.policy import PolicyState
from engine.records import Probe
from engine.step_time.columns import Bools, Floats, Ints
from engine.step_time.model import StepModel

_PREFILL: Final = CAUSE_CODE["prefill"]
_PROBE: Final = LIMIT_CODE["probe"]
_NOT_OURS: Final = tuple(LIMIT_CODE[limit] for limit in ("off", "hint", "lane", "operator"))


@dataclass(frozen=True)
class ObservedSteps:
    """S steps in order. Arrays of length S."""

    number: Ints
    """The engine's own count of steps; those of a probe block follow each other."""
    ts: Floats
    """End of the step, Unix seconds."""
    duration_ms: Floats
    probe: Sequence[Probe | None]


@dataclass(frozen=True)
class ObservedRows:
    """The rows of these steps, in their order. Arrays of one length."""

    step: Ints
    """Place of the row's step in `ObservedSteps`."""
    workload: Ints
    """Place of its tag in the names given with it."""
    sequence: Ints
    """A number for each sequence of the engine."""
    k_asked: Ints
    limit: Ints
    """As `engine.frames.LIMIT_CODE`."""
    drafted: Ints
    accepted: Ints
    emitted: Ints
    context: Ints
    cause: Ints
    """As `engine.frames.CAUSE_CODE`."""

    def take(self, where: Bools) -> ObservedRows:
        return ObservedRows(*(getattr(self, name)[where] for name in ObservedRows.__dataclass_fields__))


class _Watched:
    """One workload: mutable."""

    def __init__(self, name: str, max_k: int, settings: DecidingSettings) -> None:
        self.name = name
        self.steps = 0
        self.last_seen = 0.0
        self.recent = SlidingPositions(max_k, settings.recent_s)
        self.window = SlidingPositions(max_k, settings.window_s)
        self.blocks: list[tuple[int, ProbeBlock]] = []
        """First step and what it said, oldest first."""


class Observer:
    """Feed it with `add`, read it with `estimates`. Not thread-safe."""

    def __init__(
        self, boot: str, version: str, max_k: int, fixed_batch_k: bool, settings: DecidingSettings | None = None
    ) -> None:
        self._settings = settings = settings or DecidingSettings()
        self._boot, self._version, self._max_k, self._fixed = boot, version, max_k, fixed_batch_k
        self._watched: dict[str, _Watched] = {}
        self._numbers: dict[str, int] = {}
        """Column of each workload in the compositions of `SlidingLoads`, less 1."""
        self._loads = SlidingLoads(settings.load_s)
        self._totals = NOTHING_YET
        self._block: tuple[int, int, Probe] | None = None
        """First and last step of the last block, and its kind."""

    def add(self, steps: ObservedSteps, rows: ObservedRows, names: Sequence[str]) -> None:
        """Take some steps, in order, and all their rows. `names`: the tags that `rows.workload` counts into."""
        if not len(steps.number):
            return
        decode = rows.take(rows.cause != _PREFILL)
        now = float(steps.ts[-1])
        blocks = self._blocks(steps)
        probing = blocks >= 0
        self._totals = Totals(
            self._totals.steps + len(steps.number),
            self._totals.emitted + int(decode.emitted.sum()),
            self._totals.busy_ms + float(steps.duration_ms.sum()),
            self._totals.probe_steps + int(probing.sum()),
            self._totals.probe_ms + float(steps.duration_ms[probing].sum()),
        )
        ours = ~np.isin(decode.limit, _NOT_OURS)
        columns = np.array([self._number(name) + 1 for name in names], dtype=np.int64)
        column = np.where(ours, columns[decode.workload] if len(columns) else 0, 0)
        self._count_loads(now, len(steps.number), column, decode)
        decode, column = decode.take(ours), column[ours]
        for name, number in zip(names, columns.tolist(), strict=True):
            mine = column == number
            if mine.any():
                self._watch(self._watched[name], steps, decode.take(mine), blocks)

    def estimates(self, now: float, policy: PolicyState, model: StepModel | None) -> Estimates:
        """The picture of this moment."""
        self._forget(now)
        self._loads.expire(now)
        watched = list(self._watched.values())
        loads = self._loads.loads(max(self._numbers.values(), default=-1) + 1)
        columns = [self._numbers[one.name] for one in watched]
        return Estimates(
            ts=now,
            boot=self._boot,
            version=self._version,
            max_k=self._max_k,
            fixed_batch_k=self._fixed,
            policy=policy,
            model=model,
            workloads=tuple(self._estimate(one, now) for one in watched),
            loads=loads.take_columns(columns),
            totals=self._totals,
        )

    def _watch(self, watched: _Watched, steps: ObservedSteps, rows: ObservedRows, blocks: Ints) -> None:
        ts = float(steps.ts[-1])
        watched.steps += len(np.unique(rows.step))
        watched.last_seen = float(steps.ts[rows.step[-1]])
        block = blocks[rows.step]
        probed = rows.limit == _PROBE
        asked = rows.take((rows.k_asked > 0) & ~probed)
        if len(asked.step):
            positions = positions_of(
                asked.sequence, asked.k_asked, asked.drafted, asked.accepted, asked.cause, self._max_k
            )
            watched.recent.add(ts, positions)
            watched.window.add(ts, positions)
        told = probed & (rows.k_asked > 0) & (block >= 0) & (steps.number[rows.step] != block)
        for first in np.unique(block[told]).tolist():
            mine = told & (block == first)
            kind = steps.probe[int(rows.step[mine][0])]
            assert kind is not None  # only such steps have a block
            self._note_block(watched, first, ts, kind, rows.take(mine))

    def _note_block(self, watched: _Watched, first: int, ts: float, kind: Probe, rows: ObservedRows) -> None:
        found = positions_of(rows.sequence, rows.k_asked, rows.drafted, rows.accepted, rows.cause, self._max_k)
        evidence = Evidence(found.at_risk, found.passed, found.asked, found.drafted)
        block = ProbeBlock(kind, ts, found.sequence, evidence)
        if watched.blocks and watched.blocks[-1][0] == first:
            block = watched.blocks.pop()[1].joined(block)
        watched.blocks.append((first, block))

    def _blocks(self, steps: ObservedSteps) -> Ints:
        """For each step the number of the first step of its probe block; −1 outside of one."""
        found = np.full(len(steps.number), -1, dtype=np.int64)
        for place, kind in enumerate(steps.probe):
            if kind is None:
                continue
            number, block = int(steps.number[place]), self._block
            if block is None or number > block[1] + 1 or kind != block[2]:
                block = (number, number, kind)
            self._block = (block[0], number, kind)
            found[place] = block[0]
        return found

    def _count_loads(self, ts: float, steps: int, column: Ints, rows: ObservedRows) -> None:
        width = max(self._numbers.values(), default=-1) + 2
        counts = np.bincount(rows.step * width + column, minlength=steps * width).reshape(steps, width)
        context = np.bincount(rows.step, weights=rows.context, minlength=steps).astype(np.int64)
        some = counts.sum(axis=1) > 0
        self._loads.add(ts, counts[some], context[some])

    def _number(self, name: str) -> int:
        if name not in self._watched:
            taken = set(self._numbers.values())
            self._numbers[name] = next(number for number in range(len(taken) + 1) if number not in taken)
            self._watched[name] = _Watched(name, self._max_k, self._settings)
        return self._numbers[name]

    def _forget(self, now: float) -> None:
        for name, watched in list(self._watched.items()):
            if 0 < watched.last_seen < now - self._settings.forget_s:
                del self._watched[name], self._numbers[name]

    def _estimate(self, watched: _Watched, now: float) -> WorkloadEstimate:
        watched.recent.expire(now)
        watched.window.expire(now)
        oldest = now - self._settings.longest_pause_s
        watched.blocks = [block for block in watched.blocks if block[1].ts > oldest]
        return WorkloadEstimate(
            name=watched.name,
            steps=watched.steps,
            last_seen=watched.last_seen,
            recent=watched.recent.evidence(),
            window=watched.window.evidence(),
            blocks=tuple(block for _, block in watched.blocks),
        )
