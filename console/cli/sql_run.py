"""Runs a query of `specdeck sql` and prints its rows. A live station is asked for an export first: a snapshot of all
but single rows and steps older than an hour, which are most of a store."""

from __future__ import annotations

import csv
import io
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from console.cli.figures_text import NONE, printable
from console.cli.outcomes import BadInput, Unreachable, say
from console.cli.sources import LIVE
from console.cli.station import ask
from console.feed.protocol import ExportParams
from store.database import StoreBusy, StoreError
from store.query import SqlResult, run_sql

ROWS_SECONDS = 3600.0
_EXPORT_SECONDS = 600.0
_CELL_WIDTH = 60


def run(source: str, query: str, form: str, *, full: bool = False) -> str:
    """The rows as text, with a newline at the end. `full`: of a live station everything is copied.

    Raises:
        BadInput: the query or the source is wrong.
        Unreachable: no station, or somebody else holds the store.
    """
    if source != LIVE:
        return _print(_ask(Path(source), query), form)
    with tempfile.TemporaryDirectory(prefix="specdeck-sql-") as folder:
        copy = Path(folder) / "live.duckdb"
        since = None if full else time.time() - ROWS_SECONDS
        ask("export", str, ExportParams(path=str(copy), kind="duckdb", since=since), seconds=_EXPORT_SECONDS)
        return _print(_ask(copy, query), form)


def _ask(path: Path, query: str) -> SqlResult:
    try:
        return run_sql(path, query)
    except StoreBusy as error:
        raise Unreachable(str(error)) from error
    except StoreError as error:
        raise BadInput(str(error)) from error


def _print(result: SqlResult, form: str) -> str:
    if result.truncated:
        say(f"only the first {len(result.rows)} rows: add a LIMIT or an aggregate")
    if form == "json":
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        return msgspec.json.encode(rows).decode() + "\n"
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(result.columns)
        writer.writerows(result.rows)
        return out.getvalue()
    return _table(result)


def _table(result: SqlResult) -> str:
    rows = [[_cell(value) for value in row] for row in [result.columns, *result.rows]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(result.columns))]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return NONE
    return printable(f"{value:.6g}" if isinstance(value, float) else str(value), _CELL_WIDTH)
