"""Which rows of a trace a cut is to keep."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from engine.records import EngineRecord, Record, Row, SequenceRecord, StepRecord
from store.buckets import DEFAULT_EDGES, UNATTRIBUTED, UNKNOWN_TEMPERATURE, UNTAGGED
from store.trace.reading import Steps, read_pieces

Name = tuple[str, int, str]
"""Engine, how often it had started by then, and the sequence's name."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What to keep; None and empty: all. Times are Unix seconds, [start, end)."""

    start: float = -math.inf
    end: float = math.inf
    workload: str | None = None
    context: str | None = None
    """Label of a bucket, as is the next."""
    temperature: str | None = None
    sequences: frozenset[str] = frozenset()

    @property
    def by_row(self) -> bool:
        """Whether steps may lose rows."""
        return bool(self.sequences) or any(
            wanted is not None for wanted in (self.workload, self.context, self.temperature)
        )

    def inside(self, ts: float) -> bool:
        return self.start <= ts < self.end


class Chosen:
    """Tells chosen rows by what it has learnt of their sequences so far."""

    def __init__(self, path: Path, choice: Choice) -> None:
        self._choice = choice
        self._starts: dict[str, int] = {}
        self._labels: dict[Name, tuple[str, str]] = {}
        self._first = self._learnt_ahead(path) if choice.by_row else {}

    def _learnt_ahead(self, path: Path) -> dict[Name, tuple[str, str]]:
        """What each name stands for at first: a row may come before its sequence."""
        for piece in read_pieces(path):
            if not isinstance(piece, Steps):
                self.learn(piece, again=False)
        first, self._labels, self._starts = self._labels, {}, {}
        return first

    def learn(self, record: Record, *, again: bool = True) -> None:
        """`again`: what a name stands for is replaced when it is used again."""
        if isinstance(record, EngineRecord):
            self._starts[record.engine] = self._starts.get(record.engine, 0) + 1
        elif isinstance(record, SequenceRecord):
            name = self.name(record.engine, record.seq)
            if again or name not in self._labels:
                degrees = DEFAULT_EDGES.temperature_label(record.temperature)
                self._labels[name] = (record.workload or UNTAGGED, degrees)

    def name(self, engine: str, seq: str) -> Name:
        return engine, self._starts.get(engine, 0), seq

    def rows(self, step: StepRecord) -> list[Row]:
        if not self._choice.by_row:
            return step.rows
        return [row for row in step.rows if self._wanted(row, self.name(step.engine, row.seq))]

    def _wanted(self, row: Row, name: Name) -> bool:
        unknown = (UNATTRIBUTED, UNKNOWN_TEMPERATURE)
        workload, temperature = self._labels.get(name) or self._first.get(name, unknown)
        wanted = self._choice
        return (
            (not wanted.sequences or row.seq in wanted.sequences)
            and wanted.workload in (None, workload)
            and wanted.temperature in (None, temperature)
            and (wanted.context is None or wanted.context == DEFAULT_EDGES.context_label(row.context))
        )
