"""Counts of every bucket over a stretch of record time, from rollups where there are any and raw rows at the edges.

Whatever the split, the counts are those of the raw rows exactly.
"""

from __future__ import annotations

import math
from typing import Final

import duckdb
import numpy as np

from engine.step_time.load import LoadSums
from store import progress
from store.counts import PREFILL, Bools, Ints, Joint, SequenceTotals, sum_by_sequence
from store.levels import CELL_SECONDS, LEVELS
from store.rollup import (
    DRAFT_STEP,
    JOINT_KEYS,
    JOINT_SUMS,
    LOAD_BANDS,
    LOAD_KEYS,
    LOAD_SUMS,
    RATIO,
    STEP_FACTS,
    rolled_up_to,
)
from store.segments import Stretch, split

TOTAL_COLUMNS: Final = "count, draft_steps, ratio"
JOINT_COLUMNS: Final = "count, emitted, proposed, proposed_drafted"
_LOAD_NAMES: Final = (
    "cell", "batch_band", "context_band", "rows", "emitted", "duration_us", "emitted_batch", "emitted_context",
    "prefill",
)  # fmt: skip
LOAD_COLUMNS: Final = "count, emitted, duration_us, emitted_batch, emitted_context, prefill"

_CELL: Final = f"(floor(ts / {CELL_SECONDS}) * {CELL_SECONDS})::BIGINT AS cell"


def stretch_of(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> Stretch:
    """How this store reads (start, end]."""
    return split(
        start,
        end,
        progress.up_to(connection, progress.RAW_FROM),
        [rolled_up_to(connection, level) for level in LEVELS],
        [progress.up_to(connection, f"kept_{level.name}") for level in LEVELS],
    )


class Counts:
    """Joint histogram, totals per sequence and load of every bucket over one stretch."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> None:
        joint = _columns(connection, summed(JOINT_KEYS, JOINT_COLUMNS, joint_parts(stretch)))
        self._bucket, self._joint = joint[0], Joint(*joint[1:])
        totals = _columns(connection, summed("bucket, sequence", TOTAL_COLUMNS, total_parts(stretch)))
        self._of_sequence, self._totals = totals[0], totals[1:]
        load = _columns(connection, summed(f"cell, {LOAD_KEYS}", LOAD_COLUMNS, load_parts(stretch)))
        self._of_load, self._load = load[1], [load[0], *load[2:]]
        self.bucket_limit = int(self._bucket.max()) + 1 if len(self._bucket) else 0

    def any(self, members: Bools) -> bool:
        """Whether there are rows in the buckets that `members` (indexed by bucket) marks."""
        return bool(self._inside(members, self._bucket).any())

    def joint(self, members: Bools) -> Joint:
        return self._joint.take(self._inside(members, self._bucket))

    def sequences(self, members: Bools) -> SequenceTotals:
        """Totals of each sequence over all its rows in these buckets."""
        inside = self._inside(members, self._of_sequence)
        return sum_by_sequence(*(column[inside] for column in self._totals))

    def load(self, members: Bools) -> LoadSums:
        inside = self._inside(members, self._of_load)
        columns = dict(zip(_LOAD_NAMES, (column[inside] for column in self._load), strict=True))
        duration = columns.pop("duration_us") / 1000
        return LoadSums.of(**columns, duration_ms=duration)

    def _inside(self, members: Bools, buckets: Ints) -> Bools:
        inside: Bools = members[: self.bucket_limit][buckets]
        return inside


def summed(keys: str, columns: str, parts: list[str]) -> str:
    """The query that adds up parts of the same columns."""
    sums = ", ".join(f"sum({column})" for column in columns.split(", "))
    return f"SELECT {keys}, {sums} FROM ({' UNION ALL '.join(parts)}) GROUP BY ALL"


def joint_parts(stretch: Stretch) -> list[str]:
    """Queries that together give the joint histogram: `cell`, `JOINT_KEYS`, `JOINT_COLUMNS`."""
    return [
        f"SELECT {_CELL}, {JOINT_KEYS}, {JOINT_SUMS} FROM {_raw(stretch)} GROUP BY ALL",
        *(f"SELECT cell, {JOINT_KEYS}, {JOINT_COLUMNS} FROM {cells}" for cells in _cells(stretch, "rollup")),
    ]


def load_parts(stretch: Stretch) -> list[str]:
    """Queries that together give the load: `cell`, `LOAD_KEYS`, `LOAD_COLUMNS`."""
    return [
        f"SELECT {_CELL}, bucket, {LOAD_BANDS}, {LOAD_SUMS} FROM {_raw(stretch)} WHERE cause <> {PREFILL} GROUP BY ALL",
        *(f"SELECT cell, {LOAD_KEYS}, {LOAD_COLUMNS} FROM {cells}" for cells in _cells(stretch, "load")),
    ]


def total_parts(stretch: Stretch) -> list[str]:
    """Queries that together give the totals by sequence: `cell`, `bucket`, `sequence`, `TOTAL_COLUMNS`."""
    inside = f"WHERE cell >= {stretch.first!r} AND cell < {stretch.last!r}"
    return [
        f"""SELECT {_CELL}, bucket, sequence, count(*) AS count, count(*) FILTER ({DRAFT_STEP}) AS draft_steps,
              {RATIO} AS ratio FROM {_raw(stretch)} GROUP BY ALL""",
        *(
            f"SELECT cell, bucket, sequence, {TOTAL_COLUMNS} FROM {table} {inside}"
            for table in ("sequence_rollup_10s", "sequence_totals")
            if stretch.segments
        ),
    ]


def _raw(stretch: Stretch) -> str:
    """The rows of the edges that no cell covers, each with the facts of its step."""
    start, first, last, end = map(_literal, (stretch.start, stretch.first, stretch.last, stretch.end))
    inside = f"ts > {start} AND ts <= {end} AND (ts < {first} OR ts >= {last})"
    return f"(SELECT rows.*, {STEP_FACTS} FROM rows JOIN steps ON rows.step = steps.id WHERE {inside})"


def _cells(stretch: Stretch, kind: str) -> list[str]:
    return [f"{kind}_{level.name} WHERE cell >= {start!r} AND cell < {end!r}" for level, start, end in stretch.segments]


def _literal(ts: float) -> str:
    return repr(ts) if math.isfinite(ts) else f"'{'-' if ts < 0 else ''}infinity'::DOUBLE"


def _columns(connection: duckdb.DuckDBPyConnection, query: str) -> list[Ints]:
    """The result as int64 columns."""
    return [column.astype(np.int64) for column in connection.execute(query).fetchnumpy().values()]
