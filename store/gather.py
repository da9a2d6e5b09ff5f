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
from store.levels import CELL_SECONDS, LEVELS, Level
from store.places import Places
from store.rollup import (
    DRAFT_STEP,
    JOINT_KEYS,
    JOINT_SUMS,
    LOAD_BANDS,
    LOAD_KEYS,
    LOAD_SUMS,
    MAX_DEPTH,
    RATIO,
    STEP_FACTS,
    rolled_up_to,
    sequence_sums,
)
from store.segments import Stretch, split
from store.sql import only_row

TOTAL_COLUMNS: Final = "count, draft_steps, ratio"
JOINT_COLUMNS: Final = "count, emitted, proposed, proposed_drafted"
_LOAD_NAMES: Final = (
    "cell", "batch_band", "context_band", "rows", "emitted", "duration_us", "emitted_batch", "emitted_context",
    "prefill",
)  # fmt: skip
LOAD_COLUMNS: Final = "count, emitted, duration_us, emitted_batch, emitted_context, prefill"

_LARGEST: Final = 2**63 - 1
"""Sums are exact as BIGINT, where DuckDB's own sum would come out as a floating number. What is larger is no count."""

_CELL: Final = f"(floor(ts / {CELL_SECONDS}) * {CELL_SECONDS})::BIGINT AS cell"


def stretch_of(
    connection: duckdb.DuckDBPyConnection, start: float, end: float, coarsest: Level = LEVELS[-1]
) -> Stretch:
    """How this store reads (start, end]: in cells no larger than those of `coarsest`, where they are still there."""
    kept = [progress.up_to(connection, f"kept_{level.name}") for level in LEVELS]
    earliest = max(start, 0.0)  # nothing is older, also where the whole record is asked for
    needed = next((place for place, since in enumerate(kept) if since <= earliest), len(LEVELS) - 1)
    largest = max(needed, LEVELS.index(coarsest))
    rolled = [rolled_up_to(connection, level) if place <= largest else 0.0 for place, level in enumerate(LEVELS)]
    return split(start, end, progress.up_to(connection, progress.RAW_FROM), rolled, kept)


def rows_ever(connection: duckdb.DuckDBPyConnection, workload: str | None = None) -> int:
    """Rows that were recorded, whether or not they are still kept one by one. `workload`: only of this tag."""
    stretch = stretch_of(connection, -math.inf, math.inf)
    inside = "" if workload is None else "WHERE bucket IN (SELECT id FROM buckets WHERE workload = $workload)"
    parts = [f"SELECT bucket, 1 AS count FROM {_raw(stretch)}"]
    parts += [f"SELECT bucket, count FROM {cells}" for cells in _cells(stretch, "rollup")]
    (rows,) = only_row(
        connection,
        f"SELECT coalesce(sum(count), 0)::BIGINT FROM ({' UNION ALL '.join(parts)}) {inside}",
        {} if workload is None else {"workload": workload},
    )
    return int(rows)


class Counts:
    """Joint histogram, totals per sequence and load of every bucket over one stretch.

    Args:
        load: the same stretch, read from cells that are no longer than a block.
        block: seconds of a block of time that speedups are clustered by; see `store.blocks`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, stretch: Stretch, load: Stretch, block: int) -> None:
        joint = _columns(connection, summed(JOINT_KEYS, JOINT_COLUMNS, joint_parts(stretch)))
        self._bucket, self._joint = Places(joint[0]), Joint(*joint[1:])
        totals = _columns(connection, summed("bucket, sequence", TOTAL_COLUMNS, total_parts(stretch)))
        self._of_sequence, self._totals = Places(totals[0]), totals[1:]
        loads = _columns(connection, summed(f"cell // {block} AS block, {LOAD_KEYS}", LOAD_COLUMNS, load_parts(load)))
        self._of_load, self._load = Places(loads[1]), [loads[0], *loads[2:]]
        self.bucket_limit = self._bucket.limit

    def any(self, members: Bools) -> bool:
        """Whether there are rows in the buckets that `members` (indexed by bucket) marks."""
        return bool(len(self._bucket.of(members)))

    def joint(self, members: Bools) -> Joint:
        return self._joint.take(self._bucket.of(members))

    def sequences(self, members: Bools) -> SequenceTotals:
        """Totals of each sequence over all its rows in these buckets."""
        inside = self._of_sequence.of(members)
        return sum_by_sequence(*(column[inside] for column in self._totals))

    def load(self, members: Bools) -> LoadSums:
        inside = self._of_load.of(members)
        columns = dict(zip(_LOAD_NAMES, (column[inside] for column in self._load), strict=True))
        duration = columns.pop("duration_us") / 1000
        return LoadSums.of(**columns, duration_ms=duration)


def summed(keys: str, columns: str, parts: list[str]) -> str:
    """The query that adds up parts of the same columns."""
    sums = ", ".join(f"least(sum({column}), {_LARGEST})::BIGINT" for column in columns.split(", "))
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


def depth_parts(stretch: Stretch) -> list[str]:
    """Queries that together give acceptance at every depth by sequence: `bucket`, `sequence`, `reached`, `matched`."""
    inside = f"WHERE cell >= {stretch.first!r} AND cell < {stretch.last!r}"
    raw = f"SELECT bucket, sequence, {sequence_sums(MAX_DEPTH)} FROM {_raw(stretch)} GROUP BY ALL"
    names = "bucket, sequence, rows, draft_steps, ratio, reached, matched, resumed, resumed_ratio"
    return [
        f"SELECT bucket, sequence, reached, matched FROM ({raw}) AS part ({names})",
        *(
            f"SELECT bucket, sequence, reached, matched FROM {table} {inside}"
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
