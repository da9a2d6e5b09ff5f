"""Fills live windows from the store, so that a station that was restarted shows the last six hours at once: from the
finest rollups, and from raw rows what is not rolled up yet."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import duckdb

from store import progress
from store.counts import PREFILL, RATIO_UNIT, TallyChange, pack
from store.gather import JOINT_COLUMNS, LOAD_COLUMNS, TOTAL_COLUMNS, joint_parts, load_parts, summed, total_parts
from store.grouping import CellChange
from store.levels import CELL_SECONDS, LEVELS
from store.rollup import JOINT_KEYS, LOAD_KEYS, rolled_up_to
from store.segments import Stretch, split
from store.series import KEPT_SECONDS
from store.sql import only_row
from store.step_models import step_models
from store.stored import Stored
from store.windows import LiveWindows

Keyed = defaultdict[tuple[int, int], dict[int, list[int]]]
"""By cell (its start) and bucket, what a `CellChange` of it holds."""


def preload(windows: LiveWindows, connection: duckdb.DuckDBPyConnection, now: float) -> None:
    """Add the rows of the six hours before `now` (Unix seconds), the outages between them, and the step times."""
    stretch = _finest(connection, now)
    joint: Keyed = defaultdict(dict)
    for cell, bucket, *key, rows, emitted, proposed, drafted in _fetched(
        connection, summed(f"cell, {JOINT_KEYS}", JOINT_COLUMNS, joint_parts(stretch))
    ):
        joint[cell, bucket][pack(*key)] = [rows, emitted, proposed, drafted]
    totals: Keyed = defaultdict(dict)
    for cell, bucket, sequence, *sums in _fetched(
        connection, summed("cell, bucket, sequence", TOTAL_COLUMNS, total_parts(stretch))
    ):
        totals[cell, bucket][sequence] = sums
    loads: Keyed = defaultdict(dict)
    for cell, bucket, batch, context, *sums in _fetched(
        connection, summed(f"cell, {LOAD_KEYS}", LOAD_COLUMNS, load_parts(stretch))
    ):
        loads[cell, bucket][batch << 32 | context] = sums
    names = dict(Stored(connection).buckets())
    for cell, bucket, *sums in _fetched(connection, _SUMS.format(parts=" UNION ALL ".join(joint_parts(stretch)))):
        place = cell, bucket
        seen = min(now, cell + CELL_SECONDS)
        change = TallyChange(joint[place], totals[place])
        windows.add_change(names[bucket], CellChange(bucket, cell // CELL_SECONDS, seen, change, sums, loads[place]))
    windows.use_models(step_models(connection))
    _load(windows, connection, [now - KEPT_SECONDS, now])


_DRAFT: Final = f"cause <> {PREFILL} AND drafted > 0"
_SUMS: Final = f"""SELECT cell, bucket, coalesce(sum(count) FILTER ({_DRAFT}), 0),
  coalesce(sum(count * (accepted::BIGINT * {RATIO_UNIT} // greatest(drafted, 1))) FILTER ({_DRAFT}), 0),
  coalesce(sum(count * drafted) FILTER (cause <> {PREFILL}), 0),
  coalesce(sum(count * accepted) FILTER (cause <> {PREFILL}), 0), coalesce(sum(count) FILTER (cause <> {PREFILL}), 0),
  coalesce(sum(count * k_asked) FILTER (cause <> {PREFILL}), 0), sum(emitted)
FROM ({{parts}}) GROUP BY ALL ORDER BY cell"""
"""As the columns of `store.series`."""


def _finest(connection: duckdb.DuckDBPyConnection, now: float) -> Stretch:
    """The last six hours in the finest cells: coarser ones would be too coarse for the windows."""
    rolled = [rolled_up_to(connection), *(0.0 for _ in LEVELS[1:])]
    raw_from = progress.up_to(connection, progress.RAW_FROM)
    return split(now - KEPT_SECONDS, now, raw_from, rolled, [0.0] * len(LEVELS))


def _fetched(connection: duckdb.DuckDBPyConnection, query: str) -> list[list[int]]:
    return [[int(value) for value in row] for row in connection.execute(query).fetchall()]


def _load(windows: LiveWindows, connection: duckdb.DuckDBPyConnection, bounds: list[Any]) -> None:
    (first,) = only_row(connection, "SELECT min(ts - duration_ms / 1000) FROM steps WHERE ts > ? AND ts <= ?", bounds)
    if first is not None:
        windows.recorded_since(first)
    cell = f"floor(ts / {CELL_SECONDS})::BIGINT AS cell"
    for number, steps, running in connection.execute(
        f"SELECT {cell}, count(*), sum(running)::BIGINT FROM steps WHERE ts > ? AND ts <= ? GROUP BY ALL", bounds
    ).fetchall():
        windows.add_load(number, steps, running)
    for engine, since, until in connection.execute(
        "SELECT engine, since, ts FROM gaps WHERE since IS NOT NULL AND ts > ? AND ts <= ?", bounds
    ).fetchall():
        windows.outage(engine, since, until)
