"""Fills live windows from the store, so that a station that was restarted shows the last six hours at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import duckdb

from store.counts import PREFILL, TallyChange, pack
from store.grouping import CellChange
from store.rollup import DRAFT_STEP, RATIO
from store.schema import CELL_SECONDS
from store.series import KEPT_SECONDS
from store.sql import only_row
from store.stored import Stored
from store.windows import LiveWindows

_FROM: Final = "FROM rows JOIN steps s ON rows.step = s.id WHERE s.ts > ? AND s.ts <= ?"
_CELL: Final = f"floor(s.ts / {CELL_SECONDS})::BIGINT AS cell"


def preload(windows: LiveWindows, connection: duckdb.DuckDBPyConnection, now: float) -> None:
    """Add the rows of the six hours before `now` (Unix seconds), and the outages between them."""
    bounds = [now - KEPT_SECONDS, now]
    joint: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)
    for bucket, cell, k_asked, limit, drafted, accepted, cause, *sums in connection.execute(
        f"""SELECT bucket, {_CELL}, k_asked, limit_term, drafted, accepted, cause,
              count(*), sum(emitted)::BIGINT, coalesce(sum(proposed), 0)::BIGINT,
              coalesce(sum(drafted) FILTER (proposed IS NOT NULL), 0)::BIGINT
            {_FROM} GROUP BY ALL""",
        bounds,
    ).fetchall():
        joint[bucket, cell][pack(k_asked, limit, drafted, accepted, cause)] = sums
    totals: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)
    for bucket, cell, sequence, *sums in connection.execute(
        f"""SELECT bucket, {_CELL}, sequence, count(*), count(*) FILTER ({DRAFT_STEP}), {RATIO}::BIGINT
            {_FROM} GROUP BY ALL""",
        bounds,
    ).fetchall():
        totals[bucket, cell][sequence] = sums
    names = dict(Stored(connection).buckets())
    for row in connection.execute(_SUMS, bounds).fetchall():
        bucket, cell, last_seen, *sums = row
        change = CellChange(bucket, cell, last_seen, TallyChange(joint[bucket, cell], totals[bucket, cell]), sums)
        windows.add_change(names[bucket], change)
    _load(windows, connection, bounds)


_SUMS: Final = f"""SELECT bucket, {_CELL}, max(s.ts), count(*) FILTER ({DRAFT_STEP}), {RATIO}::BIGINT,
  coalesce(sum(drafted) FILTER (cause <> {PREFILL}), 0)::BIGINT,
  coalesce(sum(accepted) FILTER (cause <> {PREFILL}), 0)::BIGINT, count(*) FILTER (cause <> {PREFILL}),
  coalesce(sum(k_asked) FILTER (cause <> {PREFILL}), 0)::BIGINT, sum(emitted)::BIGINT
{_FROM} GROUP BY ALL ORDER BY cell"""


def _load(windows: LiveWindows, connection: duckdb.DuckDBPyConnection, bounds: list[Any]) -> None:
    (first,) = only_row(connection, "SELECT min(ts - duration_ms / 1000) FROM steps WHERE ts > ? AND ts <= ?", bounds)
    if first is not None:
        windows.recorded_since(first)
    for cell, steps, running in connection.execute(
        f"SELECT {_CELL}, count(*), sum(running)::BIGINT FROM steps s WHERE ts > ? AND ts <= ? GROUP BY ALL", bounds
    ).fetchall():
        windows.add_load(cell, steps, running)
    for engine, since, until in connection.execute(
        "SELECT engine, since, ts FROM gaps WHERE since IS NOT NULL AND ts > ? AND ts <= ?", bounds
    ).fetchall():
        windows.outage(engine, since, until)
