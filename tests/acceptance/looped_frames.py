"""A sample trace as an engine's frames, over and over: every turn later by its length, with sequences of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from engine.frames import (
    COLUMNS,
    WIRE_VERSION,
    Announcement,
    ArrivedSequence,
    FinishedSequence,
    Frame,
    PackedStep,
    encode,
)
from engine.records import EngineRecord, FinishRecord, SequenceRecord, StepRecord
from store.counts import Ints
from store.rowbatch import columns_of
from store.trace import read_records

ENGINE = "soaked"
BOOT = "soak"
PAUSE_SECONDS = 1.0
"""Between the last record of a turn and the first of the next."""


class Sent(NamedTuple):
    payload: bytes
    ts: float
    """Record time, Unix seconds."""
    rows: int


class _Step(NamedTuple):
    arrivals: list[ArrivedSequence]
    step: PackedStep
    matrix: Ints
    finishes: list[FinishedSequence]


class LoopedTrace:
    """The frames of a trace whose sequences all finish. `seconds`: length of a turn; `rows`, `steps`: of a turn."""

    def __init__(self, path: Path) -> None:
        self._handles: dict[str, int] = {}
        self._steps: list[_Step] = []
        arrivals: list[ArrivedSequence] = []
        times = []
        for record in read_records(path):
            times.append(record.ts)
            match record:
                case EngineRecord():
                    self._record = record
                case SequenceRecord():
                    arrivals.append(self._arrival(record))
                case StepRecord():
                    self._steps.append(_Step(arrivals, *self._packed(record), []))
                    arrivals = []
                case FinishRecord():
                    handle = self._handles[record.seq]
                    finish = FinishedSequence(handle, record.ts, record.reason, record.output_tokens)
                    self._steps[-1].finishes.append(finish)
        self.start = min(times)
        self.seconds = max(times) - self.start + PAUSE_SECONDS
        self.steps = len(self._steps)
        self.rows = sum(one.step.count for one in self._steps)

    def frames(self, start: float, seconds: float) -> Iterator[Sent]:
        """Messages from record time `start` on, for whole turns that begin within `seconds`; an announcement each."""
        number = turn = 0
        while turn * self.seconds < seconds:
            shift = start + turn * self.seconds - self.start
            yield Sent(self._announcement(start, number), start + turn * self.seconds, 0)
            for one in self._steps:
                number += 1
                yield self._frame(one, number, turn, shift)
            turn += 1

    def _frame(self, one: _Step, number: int, turn: int, shift: float) -> Sent:
        first = turn * len(self._handles)
        matrix = one.matrix.copy()
        matrix[0] += first
        step = msgspec.structs.replace(
            one.step,
            step=number,
            ts=one.step.ts + shift,
            columns=matrix.astype("<i4").tobytes(),
        )
        arrivals = [msgspec.structs.replace(a, seq=a.seq + first, ts=a.ts + shift) for a in one.arrivals]
        finishes = [msgspec.structs.replace(f, seq=f.seq + first, ts=f.ts + shift) for f in one.finishes]
        return Sent(
            encode(Frame(WIRE_VERSION, ENGINE, BOOT, number, arrivals, step, finishes)), step.ts, one.step.count
        )

    def _announcement(self, start: float, frame: int) -> bytes:
        record = msgspec.structs.replace(self._record, engine=ENGINE, boot=BOOT, ts=start)
        return encode(Announcement(WIRE_VERSION, record, BOOT, frame, [], 0, None, 0))

    def _arrival(self, record: SequenceRecord) -> ArrivedSequence:
        handle = self._handles[record.seq] = len(self._handles) + 1
        temperature = float("nan") if record.temperature is None else record.temperature
        return ArrivedSequence(
            handle, record.request or "", record.ts, record.workload, temperature, record.prompt_tokens,
            record.disable_speculation, record.lane, record.hint_error,
        )  # fmt: skip

    def _packed(self, record: StepRecord) -> tuple[PackedStep, Ints]:
        matrix = columns_of(record.rows, [self._handles[row.seq] for row in record.rows])
        assert matrix.shape[0] == len(COLUMNS)
        assert np.abs(matrix).max(initial=0) < 2**31, "the wire's columns are of 32 bits"
        step = PackedStep(
            record.step, record.ts, record.duration_ms, record.k_verify, record.k_draft, record.running,
            record.waiting, record.prefill_tokens, record.probe, record.policy, record.limit_draft,
            len(record.rows), b"",
        )  # fmt: skip
        return step, matrix
