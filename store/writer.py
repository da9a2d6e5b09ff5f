"""Buffers what was recorded and appends it to DuckDB, one transaction a flush, through Arrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from engine.frames import UNKNOWN
from store import rollup
from store.counts import Ints
from store.database import Store, StoreError
from store.rowbatch import (
    ACCEPTED,
    CAUSE,
    CONTEXT,
    DRAFTED,
    EMITTED,
    INVALID,
    K_ASKED,
    LIMIT,
    PROPOSED,
    RowBatch,
    StepFacts,
)
from store.storage_order import storage_order
from store.tables import TABLES

MAX_BUFFERED_ROWS: Final = 2_000_000
"""Kept while the store can't be written (a full disk); beyond it recording loses rows, and says so."""

_ARROW: Final = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "UINTEGER": pa.uint32(),
    "USMALLINT": pa.uint16(),
    "UTINYINT": pa.uint8(),
    "UBIGINT": pa.uint64(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "UBIGINT[]": pa.list_(pa.uint64()),
}

_MATRIX_COLUMNS: Final = (
    ("k_asked", K_ASKED), ("limit_term", LIMIT), ("proposed", PROPOSED), ("drafted", DRAFTED), ("invalid", INVALID),
    ("accepted", ACCEPTED), ("emitted", EMITTED), ("context", CONTEXT), ("cause", CAUSE),
)  # fmt: skip


_STEP_COLUMNS: Final = tuple(column.name for column in TABLES["steps"].columns)


class Lost(NamedTuple):
    """A stretch of a run that was given up."""

    run: int
    since: float
    until: float
    """Unix seconds: start of its first step, end of its last."""
    steps: int


class Writer:
    """The append side of a store. `add` and `add_rows` only buffer; `flush` writes all of it or nothing."""

    def __init__(self, store: Store) -> None:
        self._connection = store.cursor()
        self._records: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._batches: list[RowBatch] = []
        self._progress: dict[int, tuple[int, float | None]] = {}
        self.buffered_rows = 0

    def add(self, table: str, *values: Any) -> None:
        """Buffer one record; `values` in the order of the table's columns."""
        self._records[table].append(values)

    def add_all(self, table: str, records: Iterable[tuple[Any, ...]]) -> None:
        """Buffer many."""
        self._records[table].extend(records)

    def add_rows(self, batch: RowBatch) -> None:
        self._batches.append(batch)
        self.buffered_rows += len(batch)

    def progress(self, run: int, frame: int, ts: float | None) -> None:
        """Remember the last frame of a run, so that the next station knows what is missing."""
        self._progress[run] = (frame, ts)

    def flush(self, rolled_up_to: float | None = None) -> None:
        """Append everything in one transaction; roll up the steps that ended before `rolled_up_to`.

        Raises:
            StoreError: it can't be written. What was buffered stays buffered, up to `MAX_BUFFERED_ROWS`.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN")
            for table, records in self._records.items():
                if records:
                    _append(connection, table, _table_of(table, records))
            if self._batches:
                _append_rows(connection, self._batches)
            for run, (frame, ts) in self._progress.items():
                connection.execute("UPDATE engines SET last_frame = ?, last_ts = ? WHERE id = ?", [frame, ts, run])
            if rolled_up_to is not None:
                rollup.roll_up(connection, rolled_up_to)
            connection.execute("COMMIT")
        except duckdb.Error as error:
            _abandon(connection)
            raise StoreError(f"the store can't be written: {error}") from error
        self._clear()

    def drop_overflow(self) -> list[Lost]:
        """Give up steps and rows when the store could not be written for too long; the stretches they were of."""
        if self.buffered_rows <= MAX_BUFFERED_ROWS:
            return []
        steps = [dict(zip(_STEP_COLUMNS, values, strict=True)) for values in self._records["steps"]]
        self._records["steps"].clear()
        self._batches.clear()
        self.buffered_rows = 0
        lost = []
        for run in dict.fromkeys(step["engine_run"] for step in steps):
            mine = [step for step in steps if step["engine_run"] == run]
            since = mine[0]["ts"] - mine[0]["duration_ms"] / 1000
            lost.append(Lost(run, since, max(step["ts"] for step in mine), len(mine)))
        return lost

    def _clear(self) -> None:
        for records in self._records.values():
            records.clear()
        self._batches.clear()
        self._progress.clear()
        self.buffered_rows = 0


def _append(connection: duckdb.DuckDBPyConnection, table: str, arrow: pa.Table) -> None:
    connection.register("incoming", arrow)
    try:
        connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")
    finally:
        _unregister(connection)


def _append_rows(connection: duckdb.DuckDBPyConnection, batches: Sequence[RowBatch]) -> None:
    connection.register("incoming", _rows_table(batches))
    try:
        columns = ", ".join(column.name for column in TABLES["rows"].columns)
        connection.execute(f"INSERT INTO rows SELECT {columns} FROM incoming")
        rollup.add_late(connection, "incoming", min(float(batch.raw.ts.min()) for batch in batches))
    finally:
        _unregister(connection)


def _unregister(connection: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # in a transaction that failed; why it did must not be covered up
        connection.unregister("incoming")


def _rows_table(batches: Sequence[RowBatch]) -> pa.Table:
    """The rows of `batches` as Arrow columns of the table's types, with what the table leaves to their step."""
    types = {column.name: _ARROW[column.type] for column in TABLES["rows"].columns}
    sequence = np.concatenate([batch.sequence for batch in batches])
    order = storage_order(sequence, np.concatenate([batch.raw.matrix[CONTEXT] for batch in batches]))
    columns: dict[str, pa.Array] = {
        "step": _cast(np.concatenate([batch.raw.step for batch in batches])[order], types["step"]),
        "sequence": _cast(sequence[order], types["sequence"]),
        "bucket": _cast(np.concatenate([batch.bucket for batch in batches])[order], types["bucket"]),
    }
    for name, place in _MATRIX_COLUMNS:
        values = np.concatenate([batch.raw.matrix[place] for batch in batches])[order]
        columns[name] = _cast(values, types[name], UNKNOWN if place == PROPOSED else None)
    columns["post_resume"] = pa.array((np.concatenate([batch.post_resume for batch in batches]) > 0)[order])
    columns["ts"] = pa.array(np.concatenate([batch.raw.ts for batch in batches])[order])
    for place, name in enumerate(StepFacts._fields):
        fact = np.concatenate([batch.raw.facts[place] for batch in batches])[order]
        columns[name] = pa.array(fact.astype(np.uint64))
    return pa.table(columns)


def _cast(values: Ints, kind: pa.DataType, null: int | None = None) -> pa.Array:
    if null is None:
        return pa.array(values.astype(kind.to_pandas_dtype()))
    return pa.array(np.where(values == null, 0, values).astype(kind.to_pandas_dtype()), mask=values == null)


def _table_of(table: str, records: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = TABLES[table].columns
    return pa.table(
        {
            column.name: _array(values, _ARROW[column.type])
            for column, values in zip(columns, zip(*records, strict=True), strict=True)
        }
    )


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow column. What it can't hold is cut to its range: one odd record must not stop the rest."""
    try:
        return pa.array(values, type=kind)
    except (pa.ArrowException, OverflowError, UnicodeError):
        return pa.array([_fitting(value, kind) for value in values], type=kind)


def _fitting(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return max(int(limits.min), min(int(limits.max), value))
    if pa.types.is_floating(kind):
        return max(-1e300, min(1e300, value))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _abandon(connection: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # there may be no transaction left to roll back
        connection.execute("ROLLBACK")
