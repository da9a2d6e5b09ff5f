"""The 10-s rollups: joint histograms per bucket, and totals per sequence and bucket, made by DuckDB from raw rows.

`meta.rolled_up_to` says which steps are in. It moves in the transaction that adds them, so a killed process leaves
rollups that are behind but never wrong, and the next flush catches up. Rows of one key add up: rows that come late for
a cell that is already rolled up are simply added.
"""

from __future__ import annotations

from typing import Final

import duckdb

from store.counts import PREFILL
from store.schema import CELL_SECONDS, RATIO_UNIT
from store.sql import only_row

BEHIND_SECONDS: Final = 20.0
"""A cell is rolled up this long after its end in record time: rows may wait 15 s for their sequence."""

_CELL: Final = f"(floor(ts / {CELL_SECONDS}) * {CELL_SECONDS})::BIGINT"

_JOINT: Final = f"""INSERT INTO rollup_10s
SELECT {_CELL} AS cell, bucket, k_asked, limit_term, drafted, accepted, cause, count(*), sum(emitted),
  coalesce(sum(proposed), 0), coalesce(sum(drafted) FILTER (proposed IS NOT NULL), 0)
FROM {{source}} GROUP BY ALL"""

DRAFT_STEP: Final = f"(cause <> {PREFILL} AND drafted > 0)"
RATIO: Final = f"coalesce(sum((accepted::BIGINT * {RATIO_UNIT}) // greatest(drafted, 1)) FILTER ({DRAFT_STEP}), 0)"

_SEQUENCES: Final = f"""INSERT INTO sequence_rollup_10s
SELECT {_CELL} AS cell, bucket, sequence, count(*), count(*) FILTER ({DRAFT_STEP}), {RATIO}
FROM {{source}} GROUP BY ALL"""


def roll_up(connection: duckdb.DuckDBPyConnection, until: float) -> None:
    """Roll up whole cells of steps that ended before `until` (Unix seconds, record time)."""
    done = rolled_up_to(connection)
    edge = until // CELL_SECONDS * CELL_SECONDS
    if edge <= done:
        return
    first, last = only_row(connection, "SELECT min(id), max(id) FROM steps WHERE ts >= ? AND ts < ?", [done, edge])
    if first is not None:
        # The bounds on `step` let the scan skip what was rolled up long ago.
        source = (
            "(SELECT rows.*, ts FROM rows JOIN steps ON rows.step = steps.id "
            f"WHERE rows.step BETWEEN {first} AND {last} AND ts >= {done!r} AND ts < {edge!r})"
        )
        connection.execute(_JOINT.format(source=source))
        connection.execute(_SEQUENCES.format(source=source))
    connection.execute("UPDATE meta SET rolled_up_to = ?", [edge])


def add_late(connection: duckdb.DuckDBPyConnection, relation: str, earliest: float) -> None:
    """Add the rows of `relation` (the table's columns and `ts`) that belong to cells already rolled up."""
    done = rolled_up_to(connection)
    if earliest < done:
        source = f"(SELECT * FROM {relation} WHERE ts < {done!r})"
        connection.execute(_JOINT.format(source=source))
        connection.execute(_SEQUENCES.format(source=source))


def rolled_up_to(connection: duckdb.DuckDBPyConnection) -> float:
    (done,) = only_row(connection, "SELECT rolled_up_to FROM meta")
    return float(done)
