"""Traffic for the judge of which everything is known: no chance in it, so that what must come out can be said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from store.buckets import BucketName
from store.judge.alerts import Alert, Note
from store.judge.inputs import EngineLoad, Event, LoadCells, SequenceCells
from store.judge.judge import Judge
from store.judge.settings import JudgeSettings

HOUR = 3600.0
DAY = 24 * HOUR
T0 = 1_790_000_000 // 21_600 * 21_600.0
VERSION_A = "target@1 | drafter@a | eagle3 | vllm 0.32.0"
VERSION_B = "target@1 | drafter@b | eagle3 | vllm 0.32.0"


def name(
    workload: str = "chat", context: str = "0-512", temperature: str = "0", version: str = VERSION_A, engine: str = "e0"
) -> BucketName:
    return engine, workload, context, temperature, version


class Flow(NamedTuple):
    """The sequences of one bucket: half of them accept `spread` more than `rate`, half as much less. Each drafts
    `steps` times `k` tokens."""

    rate: float
    k: int = 4
    sequences: int = 40
    """In each five minutes."""
    steps: int = 50
    spread: float = 0.08
    accepted: int | None = None
    """So many tokens of each step, whatever is drafted, in place of a rate."""
    resumed: float | None = None
    """As many sequences more, whose 50 draft steps are post-resume and accept this much."""


class Feed:
    """Serves traffic to a judge, five minutes at a time, and remembers all that came out."""

    def __init__(self, names: Mapping[int, BucketName], settings: JudgeSettings | None = None) -> None:
        self.names = dict(names)
        self.judge = Judge(self.names, settings or JudgeSettings())
        self.now = T0
        self.alerts: dict[int, Alert] = {}
        self.notes: list[Note] = []
        self._sequences = 0

    def serve(self, seconds: float, flows: Mapping[int, Flow], *, same: bool = False) -> None:
        """So long of this traffic, in bucket → flow. It comes in the first cell of each five minutes.

        Args:
            same: always from the same sequences, that nobody else has.
        """
        for _ in range(round(seconds / 300)):
            first = self._sequences
            self.cell(flows)
            if same:
                self._sequences = first
            self.skip(300.0)
        self._sequences += 10_000

    def history(self, days: float, flows: Mapping[int, Flow]) -> None:
        """So long of this traffic, once an hour: it leaves a baseline, and costs little."""
        for _ in range(round(24 * days)):
            self.cell(flows)
            self.skip(HOUR)

    def cell(self, flows: Mapping[int, Flow]) -> None:
        """One cell, now."""
        self.judge.sequences(self._cell(flows))

    def skip(self, seconds: float) -> None:
        """Nothing happens for so long."""
        self.now += seconds
        self.judge.advance(self.now)
        self.collect()

    def event(self, event: Event) -> None:
        self.judge.event(event)
        self.collect()

    def run(self, seconds: float, loads: Mapping[int, Load]) -> None:
        """So long of this load, in 10-s cells."""
        for number in range(round(seconds / 10)):
            self.judge.load(load_cell(self.now, loads, number))
            self.now += 10.0
            self.judge.advance(self.now)
        self.collect()

    def collect(self) -> None:
        changes = self.judge.changes()
        self.alerts |= {alert.id: alert for alert in changes.alerts}
        self.notes += changes.notes

    @property
    def fired(self) -> list[Alert]:
        """Every alert that ever fired, oldest first."""
        return [alert for _, alert in sorted(self.alerts.items()) if alert.started is not None]

    @property
    def firing(self) -> list[Alert]:
        return [alert for alert in self.fired if alert.state == "firing"]

    def _cell(self, flows: Mapping[int, Flow]) -> SequenceCells:
        deepest = max([flow.k for flow in flows.values()], default=0)
        rows = [row for bucket, flow in flows.items() for row in _rows(bucket, flow, deepest)]
        first = self._sequences
        self._sequences += len(rows)
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        bucket, decode_rows, reached, matched, resumed, ratio = columns
        return SequenceCells(
            ts=self.now,
            bucket=bucket.astype(np.int64),
            sequence=np.arange(first, self._sequences),
            decode_rows=decode_rows.astype(np.int64),
            reached=reached.reshape(len(rows), deepest),
            matched=matched.reshape(len(rows), deepest),
            resumed_steps=resumed.astype(np.int64),
            resumed_ratio=ratio.astype(float),
        )


def _rows(bucket: int, flow: Flow, deepest: int) -> list[tuple[int, int, list[int], list[float], int, float]]:
    """Bucket, decode rows, reached, matched, post-resume steps and their Σ a/d of each sequence."""
    rows: list[tuple[int, int, list[int], list[float], int, float]] = []
    for place in range(flow.sequences):
        rate = min(1.0, max(0.0, flow.rate + (flow.spread if place % 2 else -flow.spread)))
        depths = range(1, deepest + 1)
        reached = [flow.steps if depth <= flow.k else 0 for depth in depths]
        matched = [flow.steps * _matched(flow, rate, depth) for depth in depths]
        rows.append((bucket, flow.steps, reached, matched, 0, 0.0))
        if flow.resumed is not None:
            rows.append((bucket, 150, [0] * deepest, [0.0] * deepest, 50, 50 * flow.resumed))
    return rows


def _matched(flow: Flow, rate: float, depth: int) -> float:
    if depth > flow.k:
        return 0.0
    return rate * depth if flow.accepted is None else min(flow.accepted, depth)


class Load(NamedTuple):
    """What one bucket does in a cell: tokens drafted and accepted, and how its engine runs."""

    speedup: float
    drafted: int = 400
    accepted: int = 250
    running: float = 1.0
    executed_k: float = 4.0
    wobble: float = 0.02
    """Cells differ by so much to either side, relative."""


def load_cell(ts: float, loads: Mapping[int, Load], number: int, engine: str = "e0") -> LoadCells:
    values = list(loads.values())
    taken = np.full(len(values), 9000.0)
    wobble = np.array([1 + (one.wobble if number % 2 else -one.wobble) for one in values])
    return LoadCells(
        ts=ts,
        bucket=np.array(list(loads), dtype=np.int64),
        gained_ms=np.array([one.speedup for one in values]) * wobble * taken,
        taken_ms=taken,
        drafted=np.array([one.drafted for one in values], dtype=np.int64),
        accepted=np.array([one.accepted for one in values], dtype=np.int64),
        decode_rows=np.full(len(values), 100, dtype=np.int64),
        engines=(EngineLoad(engine, values[0].running, values[0].executed_k),),
    )
