"""How far the rollups and retention have come. A mark moves in the transaction that does the work it stands for."""

from __future__ import annotations

from typing import Final

import duckdb

from store.sql import first_row

RAW_FROM: Final = "raw_from"
"""Steps and rows that ended at this moment or before it were removed."""
LAST_STEP: Final = "last_step"
"""The highest step that was removed; no moment but a number, which is never given out again."""
SEQUENCES_FROM: Final = "sequences_from"
"""Totals of sequences whose last row came before this moment were removed."""


def up_to(connection: duckdb.DuckDBPyConnection, name: str) -> float:
    """Steps that ended before this moment, Unix seconds, are dealt with; 0 where nothing is yet."""
    found = first_row(connection, "SELECT up_to FROM progress WHERE name = ?", [name])
    return 0.0 if found is None else float(found[0])


def move(connection: duckdb.DuckDBPyConnection, name: str, to: float) -> None:
    """Set a mark, inside the caller's transaction."""
    if first_row(connection, "UPDATE progress SET up_to = ? WHERE name = ? RETURNING name", [to, name]) is None:
        connection.execute("INSERT INTO progress VALUES (?, ?)", [name, to])
