"""The certificate of the last drill, found again among the controls."""

from __future__ import annotations

from typing import Any, Final

import duckdb
import msgspec

from store.sql import first_row

DRILL: Final = "drill"
"""The action under which a drill is recorded; its certificate is the record's `numbers`."""


def last_certificate(connection: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    """As it was recorded; None where no drill was ever made.

    Raises:
        duckdb.Error, msgspec.DecodeError: it can't be read.
    """
    row = first_row(
        connection,
        "SELECT numbers FROM controls WHERE action = ? AND numbers IS NOT NULL ORDER BY ts DESC, rowid DESC LIMIT 1",
        [DRILL],
    )
    return None if row is None else msgspec.json.decode(row[0], type=dict[str, Any])
