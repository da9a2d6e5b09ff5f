"""Turns a trace into another form, or into a store, and a store into a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import msgspec

from engine.records import Record
from store.database import Store, StoreError
from store.ingest import TEXT_LEFT, Ingest
from store.judging import judge_all
from store.records import stored_records
from store.source import is_database, take_in
from store.sql import first_row
from store.trace.errors import TraceError
from store.trace.forms import ENDINGS
from store.trace.notes import TraceNotes
from store.trace.reading import file_records
from store.trace.texts import begins_with_text, without_text
from store.trace.whole_file import whole_file
from store.trace.writing import TraceWriter

STORE_ENDING: Final = ".duckdb"


class Converted(msgspec.Struct, frozen=True):
    """What `specdeck trace convert` and `cut` print."""

    path: str
    bytes: int
    records: int
    """0 for a store."""
    notes: list[str]
    """What was left out, and what else is to be known of it."""


def convert(source: str | Path, out: str | Path, *, text: bool = True) -> Converted:
    """Write `source` (a trace of any form, or a `.duckdb`) to `out`, in the form that its name stands for.

    From one form of trace to another the records stay as they are and in the order of the file; fields that this
    specdeck doesn't know are left out, which a note says. A store is written as `specdeck export` writes it.
    `text`: whether prompts and answers go along where there are any; into a store they never go.

    Raises:
        StoreError: `source` can't be read (`TraceError` for a trace), or `out` can't be written.
    """
    source, out = Path(source), Path(out)
    notes = TraceNotes()
    with whole_file(out, (*ENDINGS, STORE_ENDING)) as partial, _records(source, notes) as records:
        if not out.name.endswith(STORE_ENDING):
            count, said = written(partial, records if text else without_text(records), notes), notes.lines()
        elif is_database(source):
            raise TraceError(out, None, f"{source} is a store already: copy it with `specdeck export {source} {out}`")
        else:
            has_text, _ = begins_with_text(records)
            count, said = 0, [TEXT_LEFT] if has_text else []
            _taken_in(source, partial, out)
    return Converted(str(out), out.stat().st_size, count, said)


def _taken_in(source: Path, partial: Path, out: Path) -> None:
    """Make a store of `source`, judged to its end, at `partial`, which is going to be `out`."""
    try:
        with Store.open(partial) as store:
            take_in(source, Ingest(store))
            judge_all(store.connection)
            store.connection.execute("CHECKPOINT")  # closing would leave in its log what finds no room, and say nothing
    except TraceError:
        raise
    except (StoreError, duckdb.Error) as error:  # a trace is read without DuckDB: this is about what is written
        what = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise TraceError(out, None, f"{what}: nothing was kept; make room there, or write it elsewhere") from error


def written(path: Path, records: Iterator[Record], notes: TraceNotes) -> int:
    """Write a trace, with the notes there are at its end; how many records it has."""
    count = 0
    has_text, records = begins_with_text(records)
    with TraceWriter(path, private=has_text) as writer:
        for record in records:
            writer.write(record)
            count += 1
        for line in notes.lines():
            writer.note(line)
    return count


@contextmanager
def _records(source: Path, notes: TraceNotes) -> Iterator[Iterator[Record]]:
    if not source.is_file():
        raise TraceError(source, None, "no such file")
    if not is_database(source):
        yield file_records(source, notes)
        return
    with Store.open(source, create=False, read_only=True) as store:
        if first_row(store.connection, "FROM engines LIMIT 1") is None:
            raise TraceError(source, None, "no engine was recorded in it, and a trace without one can't be read")
        yield stored_records(store.cursor())
