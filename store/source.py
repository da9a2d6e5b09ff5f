"""Opens whatever figures can be taken from: a store's file, or a trace read into memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from store.database import Store, StoreError
from store.ingest import Ingest
from store.judge.settings import JudgeSettings
from store.judging import judge_all
from store.trace import TraceNotes, read_records


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
        raise StoreError(f"{path}: a folder; name a .duckdb file or a trace (.jsonl, .jsonl.zst)")
    if not path.exists():
        raise StoreError(f"{path}: no such file")
    if is_database(path):
        return Store.open(path, create=False, read_only=True)
    store = Store.memory()
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
    clock = due = -math.inf
    for record in read_records(path, notes):
        if pace is not None:
            pace(record.ts)
        ingest.record(record)
        clock = max(clock, record.ts)
        if ingest.buffered_rows >= FLUSH_ROWS or clock >= due:
            ingest.flush()
            due = clock + FLUSH_RECORD_SECONDS
            if flushed is not None:
                flushed(clock)
    for line in notes.lines():
        ingest.note(line)
    ingest.close()
    if flushed is not None:
        flushed(clock)


FLUSH_ROWS = 500_000
FLUSH_RECORD_SECONDS = 600.0
