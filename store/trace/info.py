"""What a trace holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from engine.records import (
    CUT_ACTION,
    ControlRecord,
    EngineRecord,
    GapRecord,
    Record,
    SequenceRecord,
    StepRecord,
    TextRecord,
)
from store.trace.entries import type_of
from store.trace.forms import form_of
from store.trace.notes import TraceNotes
from store.trace.reading import Steps, read_pieces
from store.trace.texts import is_mark, left_out_text


class TraceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck trace info` prints. Times are Unix seconds."""

    path: str
    bytes: int
    compressed: bool
    start: float | None
    end: float | None
    records: dict[str, int]
    engines: list[EngineRecord]
    sequences: int
    steps: int
    rows: int
    workloads: dict[str, int]
    """Tag → sequences; untagged ones under `untagged`."""
    frames_lost: int
    texts: int = 0
    """Requests whose prompt and answer are in it."""
    notes: list[str]


def trace_info(path: str | Path) -> TraceInfo:
    """Read a trace once and say what is in it.

    Raises:
        TraceError: as `read_records`.
    """
    path = Path(path)
    notes = TraceNotes()
    tally = _Tally()
    for piece in read_pieces(path, notes):
        if isinstance(piece, Steps):
            tally.steps(piece)
        else:
            tally.record(piece)
    start = tally.end if tally.start is None else tally.start
    return TraceInfo(
        path=str(path), bytes=path.stat().st_size, compressed=form_of(path) != "jsonl", start=start, end=tally.end,
        records=dict(tally.kinds), engines=tally.engines, sequences=tally.kinds["sequence"],
        steps=tally.kinds["step"], rows=tally.rows, workloads=dict(tally.workloads), frames_lost=tally.lost,
        texts=tally.kinds["text"], notes=tally.notes + notes.lines(),
    )  # fmt: skip


def span_of(path: str | Path) -> tuple[float, float]:
    """Start of the first step and end of the last, Unix seconds; zeros where there is none. Raises TraceError."""
    tally = _Tally()
    for piece in read_pieces(path):
        if isinstance(piece, Steps):
            tally.steps(piece)
        elif isinstance(piece, StepRecord):
            tally.record(piece)
    return tally.start or 0.0, tally.end or 0.0


class _Tally:
    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.workloads: Counter[str] = Counter()
        self.engines: list[EngineRecord] = []
        self.start: float | None = None
        self.end: float | None = None
        self.rows = 0
        self.lost = 0
        self.notes: list[str] = []

    def steps(self, steps: Steps) -> None:
        block, start, stop = steps
        self.kinds["step"] += stop - start
        self.rows += block.rows(start, stop)
        began = block.ts[start:stop] - block.duration_ms[start:stop] / 1000
        self._spans(float(began.min()), max(block.times[start:stop]))

    def record(self, record: Record) -> None:
        self.kinds[type_of(record)] += 1
        match record:
            case EngineRecord():
                self.engines.append(record)
                return
            case ControlRecord():  # in a cut it may be older than all else: it was still in force
                self._spans(None, record.ts)
                if record.action == CUT_ACTION and record.why:
                    self.notes.append(record.why)
                if is_mark(record) and (left_out := left_out_text(record)):
                    self.notes.append(left_out)
                return
            case TextRecord():  # it is of a request that a sequence stands for
                return
            case StepRecord():
                self.rows += len(record.rows)
                self._spans(record.ts - record.duration_ms / 1000, record.ts)
                return
            case SequenceRecord():
                self.workloads[record.workload or "untagged"] += 1
            case GapRecord():
                self.lost += record.frames_lost
        self._spans(record.ts, record.ts)

    def _spans(self, start: float | None, end: float) -> None:
        self.end = end if self.end is None else max(self.end, end)
        if start is not None:
            self.start = start if self.start is None else min(self.start, start)
