"""Steps from each version of the schema to the next. They run on a file of which a copy was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import duckdb
import zstandard

from store import schema
from store.counts import PREFILL
from store.tables import TABLES


class NoMigration(Exception):
    """A version that no step leads on from."""


def migrate(
    connection: duckdb.DuckDBPyConnection,
    version: int,
    target: int,
    migrations: Mapping[int, Callable[[duckdb.DuckDBPyConnection], None]] | None = None,
) -> None:
    """Step from `version` to `target` in one transaction: all of it or nothing. None: the steps of this module.

    Raises:
        NoMigration: a step is missing.
    """
    steps = MIGRATIONS if migrations is None else migrations
    connection.execute("BEGIN")
    try:
        for step in range(version, target):
            if step not in steps:
                raise NoMigration(f"schema {step} has no migration to {step + 1}")
            steps[step](connection)
        connection.execute("UPDATE meta SET schema_version = ?, duckdb_version = ?", [target, duckdb.__version__])
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _to_2(connection: duckdb.DuckDBPyConnection) -> None:
    """Rollups at three levels, the load of steps, post-resume rows. Version 1 kept all its rows: its rollups are made
    anew from them by the next flush."""
    for view in ("row_facts", "bucket_metrics", "bucket_metrics_10s"):
        connection.execute(f"DROP VIEW {view}")  # it would hold on to what is dropped here
    for table in ("rollup_10s", "sequence_rollup_10s"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute("ALTER TABLE meta DROP COLUMN rolled_up_to")
    connection.execute("ALTER TABLE rows ADD COLUMN post_resume BOOLEAN DEFAULT false")
    for column in ("decode_rows UINTEGER", "verified UINTEGER", "context_tokens UBIGINT"):
        connection.execute(f"ALTER TABLE steps ADD COLUMN {column} DEFAULT 0")
    connection.execute(
        f"""UPDATE steps SET decode_rows = f.n, verified = f.n + f.drafted, context_tokens = f.context
            FROM (SELECT step, count(*) AS n, sum(drafted) AS drafted, sum(context) AS context FROM rows
                  WHERE cause <> {PREFILL} GROUP BY step) f WHERE f.step = steps.id"""
    )
    for table, column in (("rows", "post_resume"), *(("steps", name) for name in _STEP_COLUMNS)):
        connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT")
    _make_missing(connection)


def _to_3(connection: duckdb.DuckDBPyConnection) -> None:
    """Notes say when; quarantined rows are counted for longer than they are kept; what the judge knows is packed."""
    for column in ("since", "ts"):
        connection.execute(f"ALTER TABLE notes ADD COLUMN IF NOT EXISTS {column} DOUBLE")
    knew = connection.execute("SELECT up_to, state FROM judge").fetchall()
    connection.execute("DROP TABLE judge")
    _make_missing(connection)
    for up_to, state in knew:
        plain = state.encode() if isinstance(state, str) else zstandard.ZstdDecompressor().decompress(state)
        connection.execute("INSERT INTO judge VALUES (?, ?)", [up_to, zstandard.ZstdCompressor().compress(plain)])


def _to_4(connection: duckdb.DuckDBPyConnection) -> None:
    """Controls say what they were decided by; a station keeps what it must remember."""
    connection.execute("ALTER TABLE controls ADD COLUMN IF NOT EXISTS numbers VARCHAR")
    _make_missing(connection)
    for name, table in TABLES.items():  # only here every column of this version is there
        schema.comment(connection, name, table)


def _make_missing(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables that are not there yet, and all views."""
    for (view,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall():
        connection.execute(f"DROP VIEW {view}")
    present = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    schema.create(connection, {name: table for name, table in TABLES.items() if name not in present})


_STEP_COLUMNS: Final = ("decode_rows", "verified", "context_tokens")

MIGRATIONS: Final[dict[int, Callable[[duckdb.DuckDBPyConnection], None]]] = {1: _to_2, 2: _to_3, 3: _to_4}
