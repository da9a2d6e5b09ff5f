"""Copies of a store for elsewhere, consistent while recording goes on: `.duckdb`, JSONL trace, Parquet folder, CSV.

Everything is read in one transaction of a cursor of the open connection, so it shows one moment. The copy gets its
name when it is complete.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import duckdb
import msgspec

from engine.records import StateRecord
from store import progress, schema
from store.database import StoreError
from store.records import stored_records
from store.rollup import rolled_up_to
from store.sql import first_row, only_row
from store.tables import TABLES
from store.trace import TraceWriter

_numbers: Final = itertools.count(1)
"""Of the exports of this process: two into one file must not write over each other."""

Kind = Literal["duckdb", "jsonl", "compact", "parquet", "csv"]


class ExportError(StoreError):
    """It can't be written: names the place and what to do."""


class ExportResult(msgspec.Struct, frozen=True):
    path: str
    kind: Kind
    bytes: int


def kind_of(out: Path) -> Kind:
    """The kind that a name stands for: `.duckdb`, `.jsonl`, `.jsonl.zst`, `.parquet` for a compact trace, `.csv`; one
    without an ending is a Parquet folder.

    Raises:
        ExportError: another ending.
    """
    name = out.name
    if name.endswith((".jsonl", ".jsonl.zst")):
        return "jsonl"
    if name.endswith(".parquet"):
        return "compact"
    if name.endswith((".duckdb", ".csv")):
        return "duckdb" if name.endswith(".duckdb") else "csv"
    if not out.suffix:
        return "parquet"
    raise ExportError(
        f"{out}: can't tell what to write; name it .duckdb, .jsonl, .jsonl.zst, .parquet, .csv, or a Parquet folder"
    )


def export(
    connection: duckdb.DuckDBPyConnection,
    out: str | Path,
    kind: Kind | None = None,
    *,
    since: float | None = None,
    state: StateRecord | None = None,
    replace: bool = False,
) -> ExportResult:
    """Write what the store holds now to `out`; `kind` None goes by the name. CSV holds `row_facts`.

    Args:
        since: Unix seconds. A trace then holds only what is newer (`store.records`); a `.duckdb` holds all but
            steps and rows that are older and rolled up, as if they had had their time. None: everything.
        state: what the judge knew at that moment, which a trace then begins with: it holds what is newer, in
            place of `since`. Left out where steps from then on were removed meanwhile.
        replace: a file that is there goes, once its successor is complete. Never the store's own, nor a folder.

    Raises:
        ExportError: `out` exists, can't be written, or is of another kind though `since` or `state` is given.
    """
    out = Path(out)
    chosen = kind or kind_of(out)
    if since is not None and chosen not in ("jsonl", "compact", "duckdb"):
        raise ExportError(
            f"{out}: only a trace and a store can begin at a moment; name it .jsonl, .jsonl.zst, .parquet or .duckdb"
        )
    if state is not None and chosen not in ("jsonl", "compact"):
        raise ExportError(f"{out}: only a trace can begin with what the judge knew; name it .jsonl.zst or .parquet")
    if out.exists():
        _check_replaced(connection, out, replace)
    ending = ".parquet" if chosen == "compact" else ".zst" if out.name.endswith(".zst") else ""
    partial = out.with_name(f".{out.name}.partial-{os.getpid()}-{next(_numbers)}{ending}")
    cursor = connection.cursor()
    try:
        if state is not None:
            _record(cursor, partial, state)
        else:
            _WRITERS[chosen](cursor, partial, since)
        if out.exists():  # another may have been made meanwhile: consoles propose the same name within a minute
            _check_replaced(connection, out, replace)
        os.replace(partial, out)
    except (OSError, duckdb.IOException, duckdb.TransactionException) as error:  # the last: a full disk at the commit
        raise ExportError(f"{out}: can't be written: {error}") from error
    finally:
        _remove(partial)
        cursor.close()
    files = out.iterdir() if out.is_dir() else [out]
    return ExportResult(str(out), chosen, sum(file.stat().st_size for file in files))


def _check_replaced(connection: duckdb.DuckDBPyConnection, out: Path, replace: bool) -> None:
    if not replace:
        raise ExportError(f"{out}: exists; choose another name, or remove it first")
    if not out.is_file():
        raise ExportError(f"{out}: is there and no file; choose another name")
    with connection.cursor() as cursor:
        own = cursor.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    if any(os.path.exists(path) and os.path.samefile(path, out) for (path,) in own):
        raise ExportError(f"{out}: is the store itself; choose another name")


def _to_duckdb(cursor: duckdb.DuckDBPyConnection, path: Path, since: float | None) -> None:
    # Made by our own definitions: DuckDB's COPY FROM DATABASE leaves the comments on columns behind.
    with duckdb.connect(str(path)) as made:
        schema.create(made)
    (origin,) = only_row(cursor, "SELECT current_database()")
    cursor.execute(f"ATTACH {_quoted(path)} AS exported (READ_WRITE)")  # also from a store opened for reading only
    try:
        with _snapshot(cursor):
            newer = _NEWER if since is not None else {}
            if since is not None:
                _mark(cursor, since)
            for table in TABLES:
                cursor.execute(f'INSERT INTO exported.{table} FROM "{origin}".{table} {newer.get(table, "")}')
            if since is not None:
                _say_what_is_gone(cursor)
        cursor.execute("CHECKPOINT exported")
    finally:
        cursor.execute("DETACH exported")


_NEWER: Final = {
    "rows": "WHERE step > getvariable('last')",
    "steps": "WHERE id > getvariable('last')",
    "quarantine": "WHERE step > getvariable('last')",
    "finishes": "WHERE ts > getvariable('edge')",
    "sequences": """WHERE ts > getvariable('edge') OR id IN (SELECT sequence FROM rows WHERE step > getvariable('last'))
      OR id IN (SELECT sequence FROM finishes WHERE ts > getvariable('edge'))""",
}


def _mark(cursor: duckdb.DuckDBPyConnection, since: float) -> None:
    """Where a copy's steps begin: nothing is left out that is not rolled up."""
    last, edge = only_row(
        cursor,
        "SELECT coalesce(max(id), 0), coalesce(max(ts), 0) FROM steps WHERE ts < ?",
        [min(since, rolled_up_to(cursor))],
    )
    last = max(int(last), int(progress.up_to(cursor, progress.LAST_STEP)))
    edge = max(edge, progress.up_to(cursor, progress.RAW_FROM))
    cursor.execute(f"SET VARIABLE last = {last}")
    cursor.execute(f"SET VARIABLE edge = {edge!r}::DOUBLE")


def _say_what_is_gone(cursor: duckdb.DuckDBPyConnection) -> None:
    """In the copy, as retention says it of a store."""
    for name, variable in ((progress.RAW_FROM, "edge"), (progress.LAST_STEP, "last")):
        cursor.execute("DELETE FROM exported.progress WHERE name = ?", [name])
        cursor.execute(f"INSERT INTO exported.progress VALUES (?, getvariable('{variable}'))", [name])


def _to_trace(cursor: duckdb.DuckDBPyConnection, path: Path, since: float | None) -> None:
    if first_row(cursor, "FROM engines LIMIT 1") is None:
        raise ExportError("no engine was recorded yet, and a trace without one can't be read")
    with TraceWriter(path) as writer, _snapshot(cursor):
        for record in stored_records(cursor, since):
            writer.write(record)


def _record(cursor: duckdb.DuckDBPyConnection, path: Path, state: StateRecord) -> None:
    """A trace that begins with what the judge knew. It judges whole cells: what ended at `state.ts` is in the first."""
    if progress.up_to(cursor, progress.RAW_FROM) >= state.ts:
        return _to_trace(cursor, path, state.ts)
    with TraceWriter(path) as writer, _snapshot(cursor):
        for record in stored_records(cursor, math.nextafter(state.ts, 0.0), state):
            writer.write(record)


def _to_parquet(cursor: duckdb.DuckDBPyConnection, path: Path, _: float | None) -> None:
    path.mkdir(parents=True)
    with _snapshot(cursor):
        for name in (*TABLES, "row_facts", "bucket_metrics"):
            cursor.execute(
                f"COPY (FROM {name}) TO {_quoted(path / f'{name}.parquet')} (FORMAT parquet, COMPRESSION zstd)"
            )


def _to_csv(cursor: duckdb.DuckDBPyConnection, path: Path, _: float | None) -> None:
    with _snapshot(cursor):
        cursor.execute(f"COPY (FROM row_facts ORDER BY ts, seq) TO {_quoted(path)} (FORMAT csv, HEADER)")


_WRITERS: dict[Kind, Callable[[duckdb.DuckDBPyConnection, Path, float | None], None]] = {
    "duckdb": _to_duckdb,
    "jsonl": _to_trace,
    "compact": _to_trace,
    "parquet": _to_parquet,
    "csv": _to_csv,
}


@contextmanager
def _snapshot(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    cursor.execute("BEGIN")
    try:
        yield
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    for leftover in (path, path.with_name(path.name + ".wal")):
        leftover.unlink(missing_ok=True)
