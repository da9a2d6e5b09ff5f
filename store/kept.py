"""What the station remembers from one run to the next, by name: lanes, the controller's memory, calibrations."""

from __future__ import annotations

import time

import duckdb

from store.sql import first_row


def read_kept(connection: duckdb.DuckDBPyConnection, name: str) -> bytes | None:
    """What was last kept under a name; None for nothing."""
    found = first_row(connection, "SELECT value FROM kept WHERE name = ?", [name])
    return None if found is None else bytes(found[0])


def keep(connection: duckdb.DuckDBPyConnection, name: str, value: bytes) -> None:
    """Keep something in the place of what was kept under this name before.

    Raises:
        duckdb.Error: it can't be written; what was kept before is still there.
    """
    connection.execute(
        """MERGE INTO kept USING (SELECT ? AS name, ? AS ts, ? AS value) AS latest ON kept.name = latest.name
           WHEN MATCHED THEN UPDATE SET ts = latest.ts, value = latest.value
           WHEN NOT MATCHED THEN INSERT VALUES (latest.name, latest.ts, latest.value)""",
        [name, round(time.time(), 6), value],
    )
