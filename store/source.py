"""Opens whatever figures can be taken from: a store's file, or a trace read into memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from engine.records import Record
from store.database import Store, StoreError
from store.ingest import Ingest
from store.judge.settings import JudgeSettings
from store.judging import judge_all
from store.trace import Steps, TraceNotes, read_pieces


def is_database(path: Path) -> bool:
    """Whether the file says that it is DuckDB's."""
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


def open_source(path: str | Path, settings: JudgeSettings | None = None) -> Store:
    """A store's file, opened for reading only, or a trace taken in through the same ingest as live frames.

    `settings`: to judge a trace by; a store was judged as it was recorded.

    Raises:
        StoreError: no such file, or one of its kinds: busy, newer, or a trace that can't be read (`TraceError`).
    """
    path = Path(path)
    if path.is_dir():
        raise StoreError(f"{path}: a folder; name a .duckdb file or a trace (.jsonl, .jsonl.zst, .parquet)")
    if not path.exists():
        raise StoreError(f"{path}: no such file")
    if is_database(path):
        return Store.open(path, create=False, read_only=True)
    store = Store.for_trace(path)
    try:
        take_in(path, Ingest(store))
        judge_all(store.connection, settings)
    except BaseException:
        store.close()
        raise
    return store


def take_in(
    path: str | Path,
    ingest: Ingest,
    *,
    pace: Callable[[float], None] | None = None,
    flushed: Callable[[float], None] | None = None,
) -> None:
    """Read a whole trace into `ingest` and close it.

    Args:
        pace: called with the time of each record before it is taken in, Unix seconds; may wait.
        flushed: called with the record time that was come to whenever all before it is in the store, at least every
            `FLUSH_RECORD_SECONDS` of record time, and at the end.

    Raises:
        TraceError: it can't be read.
    """
    notes = TraceNotes()
    take_in_pieces(read_pieces(path, notes), ingest, pace=pace, flushed=flushed, notes=notes)


def take_in_pieces(
    pieces: Iterable[Record | Steps],
    ingest: Ingest,
    *,
    pace: Callable[[float], None] | None = None,
    flushed: Callable[[float], None] | None = None,
    notes: TraceNotes | None = None,
) -> None:
    """The same with what `read_pieces` gives, or a part of it. Raises what `pieces` raises."""
    intake = _Intake(ingest, pace, flushed)
    for piece in pieces:
        if isinstance(piece, Steps):
            intake.steps(piece)
        else:
            intake.record(piece)
    for line in notes.lines() if notes is not None else ():
        ingest.note(line)
    ingest.close()
    if flushed is not None:
        flushed(intake.clock)


class _Intake:
    """Hands records on, and has them stored in good time."""

    def __init__(
        self, ingest: Ingest, pace: Callable[[float], None] | None, flushed: Callable[[float], None] | None
    ) -> None:
        self._ingest = ingest
        self._pace = pace
        self._flushed = flushed
        self.clock = self._due = -math.inf

    def record(self, record: Record) -> None:
        if self._pace is not None:
            self._pace(record.ts)
        self._ingest.record(record)
        self._came_to(record.ts)

    def steps(self, steps: Steps) -> None:
        """The same moments to store at as if each step came alone."""
        block, place, _ = steps
        while place < steps.stop:
            if self._pace is not None:
                self._pace(block.times[place])
                stop = place + 1
            else:
                room = FLUSH_ROWS - self._ingest.buffered_rows
                stop = block.reaching(place, steps.stop, room, self._due)
            stop = self._ingest.steps(block, place, stop)
            self._came_to(max(block.times[place:stop]))
            place = stop

    def _came_to(self, ts: float) -> None:
        self.clock = max(self.clock, ts)
        if self._ingest.buffered_rows >= FLUSH_ROWS or self.clock >= self._due:
            self._ingest.flush()
            self._due = self.clock + FLUSH_RECORD_SECONDS
            if self._flushed is not None:
                self._flushed(self.clock)


FLUSH_ROWS: Final = 500_000
FLUSH_RECORD_SECONDS: Final = 600.0
