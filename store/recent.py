"""What live windows hold besides the counts of their cells, read from a store: sums for series, the rate of right now,
load and outages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import duckdb
import numpy as np

from store import progress
from store.buckets import CALIBRATION
from store.counts import PREFILL, RATIO_UNIT, Ints
from store.gather import joint_parts
from store.levels import CELL_SECONDS, FINEST, LEVELS
from store.rollup import rolled_up_to
from store.segments import Segment, Stretch, split
from store.series import KEPT_SECONDS
from store.sql import only_row
from store.token_rate import RATE_SECONDS

LONGER: Final = LEVELS[1]
"""As long as the cells of the longest window."""
POOL: Final = 0
"""Stands for all buckets, where they are pooled."""
SERVED: Final = f"workload <> '{CALIBRATION}'"
"""Of buckets. Calibration serves nobody and is left out, of the pool too."""

_DRAFT: Final = f"cause <> {PREFILL} AND drafted > 0"
_SUMS: Final = f"""SELECT {{bucket}} AS bucket, cell, coalesce(sum(count) FILTER ({_DRAFT}), 0),
  coalesce(sum(count * (accepted::BIGINT * {RATIO_UNIT} // greatest(drafted, 1))) FILTER ({_DRAFT}), 0),
  coalesce(sum(count * drafted) FILTER (cause <> {PREFILL}), 0),
  coalesce(sum(count * accepted) FILTER (cause <> {PREFILL}), 0), coalesce(sum(count) FILTER (cause <> {PREFILL}), 0),
  coalesce(sum(count * k_asked) FILTER (cause <> {PREFILL}), 0), sum(emitted)
FROM ({{parts}}) WHERE bucket IN (SELECT id FROM buckets WHERE {SERVED}) {{only}} GROUP BY ALL ORDER BY 1, cell"""
"""As the columns of `store.series`."""


class RingSums(NamedTuple):
    """Numbers of the 10-s cells of a bucket (or `POOL`), ascending, and their sums as the columns of `store.series`."""

    bucket: int
    cells: Ints
    sums: Ints


def ring_sums(
    connection: duckdb.DuckDBPyConnection,
    now: float,
    seconds: float = KEPT_SECONDS,
    *,
    pooled: bool = False,
    only: Iterable[int] | None = None,
) -> Iterator[RingSums]:
    """The last `seconds` before `now`, Unix seconds.

    Args:
        pooled: over buckets.
        only: over these buckets; None: all.
    """
    parts = " UNION ALL ".join(joint_parts(finest_stretch(connection, now - seconds, now)))
    inside = "" if only is None else f"AND bucket IN ({', '.join(map(str, only))})"
    query = _SUMS.format(bucket=POOL if pooled else "bucket", parts=parts, only=inside)
    bucket, cell, *sums = int_columns(connection, query)
    table = np.stack(sums, axis=1)
    for first, last in _runs(bucket):
        yield RingSums(int(bucket[first]), cell[first:last] // CELL_SECONDS, table[first:last])


def last_cells(connection: duckdb.DuckDBPyConnection, now: float) -> dict[int, int]:
    """Number of the last 10-s cell of each bucket that was seen in the six hours before `now`."""
    parts = " UNION ALL ".join(joint_parts(finest_stretch(connection, now - KEPT_SECONDS, now)))
    rows = connection.execute(
        f"""SELECT bucket, max(cell) // {CELL_SECONDS} FROM ({parts})
            WHERE bucket IN (SELECT id FROM buckets WHERE {SERVED}) GROUP BY bucket"""
    ).fetchall()
    return dict(rows)


def load_cells(connection: duckdb.DuckDBPyConnection, now: float) -> list[tuple[int, int, int]]:
    """Number of each 10-s cell of the six hours before `now`, its steps, and the sequences that ran in them."""
    return connection.execute(
        f"""SELECT floor(ts / {CELL_SECONDS})::BIGINT AS cell, count(*), sum(running)::BIGINT FROM steps
            WHERE ts > ? AND ts <= ? GROUP BY ALL""",
        [now - KEPT_SECONDS, now],
    ).fetchall()


def outages(connection: duckdb.DuckDBPyConnection, now: float) -> list[tuple[str, float, float]]:
    """Engine, start and end of what is not known of the six hours before `now`."""
    return connection.execute(
        "SELECT engine, since, ts FROM gaps WHERE since IS NOT NULL AND ts > ? AND ts <= ?", [now - KEPT_SECONDS, now]
    ).fetchall()


def recent_rate(connection: duckdb.DuckDBPyConnection, now: float) -> dict[int, int]:
    """Tokens committed in each of the last whole seconds, the present one besides."""
    since = math.floor(now) - RATE_SECONDS
    first, last = only_row(connection, "SELECT min(id), max(id) FROM steps WHERE ts >= ? AND ts <= ?", [since, now])
    if first is None:
        return {}
    rows = connection.execute(
        f"""SELECT floor(ts)::BIGINT, sum(emitted)::BIGINT FROM rows JOIN steps ON rows.step = steps.id
           WHERE rows.step BETWEEN $first AND $last AND ts >= $since AND ts <= $now
             AND bucket IN (SELECT id FROM buckets WHERE {SERVED}) GROUP BY ALL""",
        {"first": first, "last": last, "since": since, "now": now},
    ).fetchall()
    return dict(rows)


def _runs(ordered: Ints) -> Iterator[tuple[int, int]]:
    """From where to where each value of an ascending column stands."""
    edges = np.flatnonzero(np.diff(ordered)) + 1
    yield from zip([0, *edges.tolist()], [*edges.tolist(), len(ordered)], strict=True) if len(ordered) else ()


def finest_stretch(connection: duckdb.DuckDBPyConnection, start: float, now: float) -> Stretch:
    """The stretch in the finest cells: coarser ones would be too coarse for the windows."""
    rolled = [rolled_up_to(connection), *(0.0 for _ in LEVELS[1:])]
    raw_from = progress.up_to(connection, progress.RAW_FROM)
    return split(start, now, raw_from, rolled, [0.0] * len(LEVELS))


def with_longer_cells(connection: duckdb.DuckDBPyConnection, stretch: Stretch, until: float) -> Stretch:
    """A stretch of finest cells with `LONGER` ones before `until`, where they fit in: far fewer to be read."""
    if not stretch.segments:
        return stretch
    first, last = stretch.first, stretch.last
    begin = min(math.ceil(first / LONGER.seconds) * LONGER.seconds, last)
    end = max(begin, LONGER.floor(min(until, rolled_up_to(connection, LONGER), last)))
    cut = [Segment(FINEST, first, begin), Segment(LONGER, begin, end), Segment(FINEST, end, last)]
    return stretch._replace(segments=[one for one in cut if one.start < one.end])


def int_columns(connection: duckdb.DuckDBPyConnection, query: str) -> list[Ints]:
    """The result as int64 columns."""
    return [column.astype(np.int64) for column in connection.execute(query).fetchnumpy().values()]
