"""The store's tables, version 4: names, types, and the comments that every DuckDB client can read.

Raw rows hold counts and small integers only; names of terms and causes are spelled out by the views. Whatever is
derived is derived by a view, a rollup or `store.metrics`, never stored beside the counts.
"""

from __future__ import annotations

from typing import Final

from store.columns import Table, columns
from store.judge_tables import JUDGE_TABLES
from store.record_tables import RECORD_TABLES
from store.rollup_tables import ROLLUP_TABLES

_FILE_TABLES: Final[dict[str, Table]] = {
    "meta": Table(
        "One row: what this file is",
        columns(
            "schema_version INTEGER: Version of tables and views; a newer one is refused, an older one migrated",
            "duckdb_version VARCHAR: DuckDB that created or last migrated the file",
            "created DOUBLE: Unix seconds",
        ),
    ),
    "progress": Table(
        "How far each kind of housekeeping has come",
        columns(
            "name VARCHAR: A rollup, by its table; raw_from: what is older was removed from steps and rows",
            "up_to DOUBLE: Steps that ended before this moment (Unix seconds) are dealt with",
        ),
    ),
    "kept": Table(
        "What a station remembers from one run to the next: lanes, what its controller knows, calibrations",
        columns(
            "name VARCHAR: What it is; a name has one row",
            "ts DOUBLE: When it was kept, Unix seconds",
            "value BLOB: In a form of its own; opaque",
        ),
    ),
    "notes": Table(
        "What a reader of the figures should know, e.g. fields that were ignored",
        columns(
            "text VARCHAR: One line",
            "since DOUBLE: Start of the stretch that it is about, Unix seconds; NULL, as the end, for the whole record",
            "ts DOUBLE: Its end",
        ),
    ),
}  # fmt: skip
"""About the file itself."""

TABLES: Final[dict[str, Table]] = {**_FILE_TABLES, **RECORD_TABLES, **JUDGE_TABLES, **ROLLUP_TABLES}
