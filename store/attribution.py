"""Gives rows their sequence and bucket, in batches. Impossible ones are set apart, those of unknown sequences wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from engine.frames import UNKNOWN
from store.buckets import UNATTRIBUTED, UNKNOWN_TEMPERATURE, BucketBook, TagBook
from store.counts import Ints
from store.resume import ResumeTracker
from store.rowbatch import CONTEXT, REASONS, SEQ, RawRows, RowBatch, impossible, join
from store.runs import LINGER_SECONDS, EngineRun, Known, unknown_engine
from store.windows import LiveWindows
from store.writer import Writer

WAIT_SECONDS: Final = LINGER_SECONDS
"""Record time that a row of an unknown sequence waits for it to be introduced."""


class IngestCounts(msgspec.Struct):
    """What was taken in since this ingest began."""

    rows: int = 0
    gaps: int = 0
    frames_lost: int = 0
    quarantined: int = 0
    unattributed: int = 0
    broken_messages: int = 0


class Attribution:
    """Takes raw rows, and hands possible ones with sequence and bucket to the writer and the live windows."""

    def __init__(
        self,
        counts: IngestCounts,
        writer: Writer,
        book: BucketBook,
        tags: TagBook,
        windows: LiveWindows | None,
        new_sequence: Callable[[], int],
    ) -> None:
        self._counts = counts
        self._writer = writer
        self._book = book
        self._tags = tags
        self._windows = windows
        self._new_sequence = new_sequence
        self.resumes = ResumeTracker()
        self._parts: dict[int, tuple[EngineRun, list[RawRows]]] = {}
        self._waiting: list[tuple[float, EngineRun, RawRows]] = []
        self.pending = 0
        """Rows that wait for the next `digest`."""

    def put(self, run: EngineRun, raw: RawRows) -> None:
        self._parts.setdefault(run.number, (run, []))[1].append(raw)
        self.pending += len(raw)

    def digest(self, clock: float) -> None:
        """Work on what has come. `clock`: record time, Unix seconds; rows that waited for too long by it give up."""
        parts, self._parts, self.pending = self._parts, {}, 0
        for run, rows in parts.values():
            self._attribute(run, self._possible(run, join(rows)))
        self._expire(clock)

    def _possible(self, run: EngineRun, raw: RawRows) -> RawRows:
        """The rows that can be; the others go to quarantine."""
        verdict = impossible(raw.matrix)
        if not verdict.any():
            return raw
        bad = raw.take(verdict > 0)
        self._counts.quarantined += len(bad)
        for column, step, ts, why in zip(bad.matrix.T, bad.step, bad.ts, verdict[verdict > 0], strict=True):
            handle, *values = (int(value) for value in column)
            self._writer.add(
                "quarantine", int(step), run.number, run.name_of(handle), float(ts),
                *(None if value == UNKNOWN else value for value in values), REASONS[int(why) - 1],
            )  # fmt: skip
        return raw.take(verdict == 0)

    def _attribute(self, run: EngineRun, raw: RawRows) -> None:
        """Give rows their sequence and bucket; those of unknown sequences wait."""
        if not len(raw):
            return
        sequences, classes = run.lookup(raw.matrix[SEQ])
        known = (sequences >= 0) & (classes >= 0)
        if not known.all():
            rest = raw.take(~known)
            self._waiting.append((float(rest.ts.min()) + WAIT_SECONDS, run, rest))
            raw, sequences, classes = raw.take(known), sequences[known], classes[known]
        if len(raw):
            self._keep(raw, sequences, classes)

    def _keep(self, raw: RawRows, sequences: Ints, classes: Ints) -> None:
        buckets, new = self._book.buckets(classes, raw.matrix[CONTEXT])
        for bucket in new:
            self._writer.add("buckets", bucket, *self._book.names[bucket])
        latest = float(raw.ts.max())
        for klass in np.unique(classes):
            self._tags.touch(self._book.workload_of(int(klass)), latest)
        batch = RowBatch(raw, sequences, buckets, self.resumes.mark(sequences, raw.matrix))
        self._writer.add_rows(batch)
        self._counts.rows += len(batch)
        if self._windows is not None:
            self._windows.add(batch, self._book.names)

    def _expire(self, clock: float) -> None:
        """Try waiting rows again; those that have waited long enough are stored as unattributed."""
        waiting, self._waiting = self._waiting, []
        for deadline, run, raw in waiting:
            sequences, classes = run.lookup(raw.matrix[SEQ])
            known = (sequences >= 0) & (classes >= 0)
            if known.any():
                self._keep(raw.take(known), sequences[known], classes[known])
                raw = raw.take(~known)
            if not len(raw):
                continue
            if clock < deadline:
                self._waiting.append((deadline, run, raw))
            else:
                self._give_up(run, raw)

    def _give_up(self, run: EngineRun, raw: RawRows) -> None:
        """Nobody introduced these rows' sequences in time, or their engine."""
        if run.record is None:
            run.record, run.placeholder = unknown_engine(run.engine, run.boot, float(raw.ts.min())), True
            run.classify(self._book)
        for handle in dict.fromkeys(raw.matrix[SEQ].tolist()):  # as they came: handles are numbered as it happens
            if handle not in run.handles:
                self._adopt(run, handle, float(raw.ts.min()))
        sequences, classes = run.lookup(raw.matrix[SEQ])
        strangers = [handle for handle, known in run.handles.items() if not known.attributed]
        self._counts.unattributed += int(np.isin(raw.matrix[SEQ], strangers).sum())
        self._keep(raw, sequences, classes)

    def _adopt(self, run: EngineRun, handle: int, ts: float) -> None:
        sequence = self._new_sequence()
        known = Known(sequence, UNATTRIBUTED, UNKNOWN_TEMPERATURE, 0, attributed=False)
        run.introduce(handle, known, self._book)
        self._writer.add(
            "sequences", sequence, run.number, run.name_of(handle), None, ts, UNATTRIBUTED, None, None, None, None,
            None, None,
        )  # fmt: skip
