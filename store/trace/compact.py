"""Reads the compact form (`store.trace.compact_schema`), a row group at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from engine.frames import CAUSE_CODE, COLUMNS, LIMIT_CODE, UNKNOWN
from engine.records import Record
from store.counts import Ints
from store.record_tables import PROBES
from store.rowbatch import SEQ
from store.step_block import NO_PROBE, WHOLE_FACTS, StepBlock, sound
from store.trace.compact_schema import FORMAT, FORMAT_KEY, NOTES_KEY, ROW_NAMES, SCHEMA, SEQUENCE
from store.trace.entries import Entry
from store.trace.errors import TraceError
from store.trace.jsonl import parse
from store.trace.notes import TraceNotes

_NAMED: Final[Mapping[str, Mapping[str, int]]] = {
    "limit": LIMIT_CODE,
    "limit_draft": LIMIT_CODE,
    "cause": CAUSE_CODE,
    "probe": {name: code for code, name in enumerate(PROBES)},
}


def blocks(path: Path, notes: TraceNotes) -> Iterator[Entry]:
    """In the order of the file, the steps in blocks. Raises TraceError, after all that came before."""
    with _explained(path):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
    with file:
        notes.carried += _checked(path, file)
        number = 1
        for group in range(file.num_row_groups):
            with _explained(path):
                table = file.read_row_group(group, columns=SCHEMA.names, use_threads=False).combine_chunks()
                table.validate(full=True)  # pages have checksums, what says where they are has none
                entries = list(_Group(path, number, table).entries(notes))
            yield from entries
            number += len(table)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except TraceError:
        raise
    except Exception as error:  # whatever Arrow and numpy make of it
        what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        why = "it is cut off or damaged; copy it again, or have it made anew"
        raise TraceError(path, None, f"a Parquet file that can't be read: {what}: {why}") from error


def _checked(path: Path, file: parquet.ParquetFile) -> list[str]:
    """The notes in the file.

    Raises:
        TraceError: it isn't one of ours, or is of a newer form.
    """
    metadata = file.metadata.metadata or {}
    if FORMAT_KEY not in metadata:
        what = f"a Parquet file, but no trace of specdeck's: no {FORMAT_KEY.decode()} in its metadata"
        raise TraceError(path, None, what, foreign=True)
    version = metadata[FORMAT_KEY].decode("ascii", "replace")
    if not version.isdecimal() or int(version) > FORMAT:
        raise TraceError(path, None, f"compact trace of form {version}; this specdeck reads up to {FORMAT}")
    found = file.schema_arrow
    for field in SCHEMA:
        if field.name not in found.names or found.field(field.name).type != field.type:
            raise TraceError(path, None, f"no column {field.name} of {field.type} in it: it was changed by others")
    try:
        notes = json.loads(metadata.get(NOTES_KEY, b"[]"))
    except ValueError:
        notes = []
    return [str(note) for note in notes] if isinstance(notes, list) else []


class _Group:
    """One row group."""

    def __init__(self, path: Path, first: int, table: pa.Table) -> None:
        self._path = path
        self._first = first
        """Number of its first record in the file, from 1."""
        self._columns = {name: _whole(table.column(name)) for name in table.column_names}
        self._apart = self._columns["record"].is_valid().to_numpy(False)
        """Records that are JSON."""

    def entries(self, notes: TraceNotes) -> Iterator[Entry]:
        times = self._numbers("ts", np.float64)
        if not np.isfinite(times).all():
            raise self._wrong("ts", "is no number")
        found: list[tuple[Record | StepBlock, int] | None] = [None] * len(times)
        for mine in self._by_engine():
            block = self._block(mine)
            fine = sound(block.ts, block.duration_ms, block.whole)
            whole = bool(fine.all())
            for place, at in enumerate(mine.tolist()):
                found[at] = (block, place) if whole or fine[place] else (block.record(place), 0)
        texts = self._columns["record"]
        for at, (ts, what) in enumerate(zip(times.tolist(), found, strict=True)):
            number = self._first + at
            if what is None:
                record = parse(self._path, number, texts[at].as_py().encode(), notes)
                yield record.ts, number, record, 0
            else:
                yield ts, number, *what

    def _by_engine(self) -> Iterator[Ints]:
        """Places of the steps that are columns, for each engine."""
        steps = np.flatnonzero(~self._apart)
        if not len(steps):
            return
        codes = self._codes("engine")[steps]
        for code in np.unique(codes):
            yield steps[codes == code]

    def _block(self, mine: Ints) -> StepBlock:
        engine = self._columns["engine"][int(mine[0])].as_py()
        if engine is None:
            raise self._wrong("engine", "is empty where there is a step")
        starts, matrix, names = self._rows(mine)
        return StepBlock(
            engine, names, self._numbers("ts", np.float64)[mine], self._numbers("duration_ms", np.float64, mine),
            {name: self._numbers(name, np.int64, mine) for name in WHOLE_FACTS},
            self._named("probe", mine, NO_PROBE), self._named("limit_draft", mine), starts, matrix,
        )  # fmt: skip

    def _rows(self, mine: Ints) -> tuple[Ints, Ints, list[str]]:
        """Where each step's rows start, the rows, and the names that they refer to."""
        take = None if len(mine) == len(self._apart) else pa.array(mine)
        starts: Ints | None = None
        matrix: Ints | None = None
        names: list[str] = []
        for place, name in enumerate(COLUMNS):
            lists = self._columns[name] if take is None else self._columns[name].take(take)
            if lists.null_count:
                raise self._wrong(name, "is empty where there is a step")
            ends = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy(False).astype(np.int64))])
            values = lists.flatten()
            if starts is None or matrix is None:
                starts, matrix = ends, np.empty((len(COLUMNS), len(values)), dtype=np.int64)
            elif not np.array_equal(starts, ends):
                raise self._wrong(name, "has another number of rows than seq")
            if name == SEQUENCE:
                names = self._names(values, name)
                matrix[SEQ] = values.indices.to_numpy(False)
            elif name in ROW_NAMES:
                matrix[place] = self._coded(values, name)
            else:
                matrix[place] = self._filled(values, name)
        assert starts is not None
        assert matrix is not None
        return starts, matrix, names

    def _filled(self, values: pa.Array, name: str) -> Any:
        if values.null_count and name == "proposed":
            values = pc.fill_null(values, UNKNOWN)
        elif values.null_count:
            raise self._wrong(name, "is empty in a row")
        return values.to_numpy(False)

    def _names(self, values: pa.Array, name: str) -> list[str]:
        names: list[str] = values.dictionary.to_pylist()
        if values.null_count or None in names:
            raise self._wrong(name, "is empty in a row")
        return names

    def _coded(self, values: pa.Array, name: str, empty: int | None = None) -> Ints:
        """Codes of a column of names."""
        codes = _NAMED[name]
        try:
            known = np.array([codes[one] for one in values.dictionary.to_pylist()] or [0], dtype=np.int64)
        except KeyError as error:
            raise self._wrong(name, f"is {error.args[0]!r}; known are {', '.join(codes)}") from None
        if values.null_count == 0:
            return known[values.indices.to_numpy(False)] if len(values) else known[:0]
        if empty is None:
            raise self._wrong(name, "is empty in a row")
        places = pc.fill_null(values.indices, 0).to_numpy(False)
        return np.where(values.is_null().to_numpy(False), empty, known[places])

    def _named(self, name: str, mine: Ints, empty: int | None = None) -> Ints:
        return self._coded(self._columns[name].take(pa.array(mine)), name, empty)

    def _numbers(self, name: str, kind: type, mine: Ints | None = None) -> Any:
        values = self._columns[name] if mine is None else self._columns[name].take(pa.array(mine))
        if values.null_count:
            raise self._wrong(name, "is empty where there must be a number")
        return values.to_numpy(False).astype(kind, copy=False)

    def _codes(self, name: str) -> Ints:
        codes: Ints = pc.fill_null(self._columns[name].indices, -1).to_numpy(False)
        return codes

    def _wrong(self, column: str, what: str) -> TraceError:
        last = self._first + len(self._apart) - 1
        return TraceError(self._path, self._first, f"column {column} {what}, in the records up to {last}")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
