"""Reading one row: DuckDB refuses other work on a connection while a result is not read to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb


def first_row(
    connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] | Mapping[str, Any] | None = None
) -> tuple[Any, ...] | None:
    """The first row of the result, or None where there is none. For results of a row or a few."""
    rows = connection.execute(query, values).fetchall()
    return rows[0] if rows else None


def only_row(
    connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] | Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """The row of a query that always has one, e.g. an aggregate without groups."""
    row = first_row(connection, query, values)
    if row is None:
        raise LookupError(f"no row: {query}")
    return row
