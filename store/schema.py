"""Makes the tables and views of this version, with the comments that every DuckDB client can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb

from store.tables import TABLES, Table
from store.views import VIEWS

SCHEMA_VERSION: Final = 2


def create(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table] = TABLES) -> None:
    """Make `tables` and every view of this version."""
    for name, table in tables.items():
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        connection.execute(f"CREATE TABLE {name} ({columns})")
        comment(connection, name, table)
    for name, (text, query) in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
        connection.execute(f"COMMENT ON VIEW {name} IS {_quoted(text)}")


def comment(connection: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    """Say what a table and its columns are."""
    connection.execute(f"COMMENT ON TABLE {name} IS {_quoted(table.comment)}")
    for column in table.columns:
        connection.execute(f"COMMENT ON COLUMN {name}.{column.name} IS {_quoted(column.comment)}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
