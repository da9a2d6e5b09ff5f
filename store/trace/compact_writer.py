"""Writes the compact form (`store.trace.compact_schema`) as a stream: memory holds one row group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from engine.frames import COLUMNS, UNKNOWN
from engine.records import Record, Row, StepRecord
from store.step_block import WHOLE_FACTS
from store.trace.compact_schema import (
    ABOUT,
    ABOUT_KEY,
    FORMAT,
    FORMAT_KEY,
    NAME,
    NOTES_KEY,
    ROW_NUMBERS,
    SCHEMA,
)
from store.trace.entries import type_of

GROUP_ROWS: Final = 131_072
GROUP_RECORDS: Final = 16_384
"""A row group is full at so many rows of sequences, or records."""
_ZSTD_LEVEL: Final = 6
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)


class CompactWriter:
    """Writes records to a new file. It can be read once it is closed."""

    def __init__(self, path: Path) -> None:
        self._writer = parquet.ParquetWriter(
            path, SCHEMA, compression="zstd", compression_level=_ZSTD_LEVEL, write_page_checksum=True
        )
        self._records: list[Record] = []
        self._rows = 0
        self._notes: list[str] = []

    def write(self, record: Record) -> None:
        self._records.append(record)
        if isinstance(record, StepRecord):
            self._rows += len(record.rows)
        if self._rows >= GROUP_ROWS or len(self._records) >= GROUP_RECORDS:
            self.flush()

    def note(self, line: str) -> None:
        self._notes.append(line)

    def flush(self) -> None:
        """End the row group."""
        if self._records:
            self._writer.write_table(_table(self._records))
            self._records, self._rows = [], 0

    def close(self) -> None:
        try:
            self.flush()
            about = {FORMAT_KEY: str(FORMAT), ABOUT_KEY: ABOUT, NOTES_KEY: json.dumps(self._notes)}
            self._writer.add_key_value_metadata(about)
        finally:
            self._writer.close()


def _table(records: Sequence[Record]) -> pa.Table:
    try:
        return _columns(records, [record if isinstance(record, StepRecord) else None for record in records])
    except (OverflowError, pa.ArrowInvalid):  # at least one of them has a number that no column holds
        return _columns(
            records, [record if isinstance(record, StepRecord) and _fits(record) else None for record in records]
        )


def _columns(records: Sequence[Record], steps: Sequence[StepRecord | None]) -> pa.Table:
    """`steps`: those of `records` that go into columns of their own, None for the others."""
    given: dict[str, Any] = {
        "type": [type_of(record) for record in records],
        "ts": [record.ts for record in records],
        "engine": [getattr(record, "engine", None) for record in records],
        "record": [
            msgspec.json.encode(record).decode() if step is None else None
            for record, step in zip(records, steps, strict=True)
        ],
    }
    for name in ("duration_ms", *WHOLE_FACTS, "probe", "limit_draft"):
        fact = attrgetter(name)
        given[name] = [None if step is None else fact(step) for step in steps]
    columns = {name: pa.array(values, type=SCHEMA.field(name).type) for name, values in given.items()}
    columns |= _row_columns([None if step is None else step.rows for step in steps])
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _row_columns(rows: Sequence[list[Row] | None]) -> dict[str, pa.Array]:
    ends = list(accumulate((0 if some is None else len(some) for some in rows), initial=0))
    places = pa.array(ends, type=pa.int32(), mask=pa.array([*(some is None for some in rows), False]).to_numpy(False))
    flat = list(chain.from_iterable(some for some in rows if some is not None))
    columns = {}
    for name in COLUMNS:
        value = attrgetter(name)
        values = [value(row) for row in flat]
        if name == "proposed" and UNKNOWN in values:
            raise OverflowError("a number that means that there is none")
        array = pa.array(values, type=pa.int32()) if name in ROW_NUMBERS else _named(values)
        columns[name] = pa.ListArray.from_arrays(places, array)
    return columns


def _named(values: Iterable[str]) -> pa.Array:
    return pa.array(values, type=pa.string()).dictionary_encode().cast(NAME)


def _fits(step: StepRecord) -> bool:
    return all(getattr(step, name) in _INT64 for name in WHOLE_FACTS) and all(_row_fits(row) for row in step.rows)


def _row_fits(row: Row) -> bool:
    if row.proposed == UNKNOWN:
        return False
    return all(getattr(row, name) in _INT32 for name in ROW_NUMBERS if getattr(row, name) is not None)
