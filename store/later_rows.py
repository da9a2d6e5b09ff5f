"""Moves live windows on to a later moment of a store: adds the steps and rows in between, as the ingest did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import duckdb
import numpy as np

from engine.frames import UNKNOWN
from store.buckets import BucketName
from store.counts import Ints
from store.levels import CELL_SECONDS
from store.rollup import STEP_FACTS
from store.rowbatch import RawRows, RowBatch
from store.sql import only_row
from store.windows import LiveWindows

_INSIDE: Final = "ts > $since AND ts <= $until"
_MATRIX: Final = f"""0, k_asked, limit_term, coalesce(proposed, {UNKNOWN}), drafted, invalid, accepted, emitted,
  context, cause"""
"""As the columns of a frame; the handle is not known any more, and nobody asks for it."""


def rows_between(connection: duckdb.DuckDBPyConnection, since: float, until: float) -> int:
    """About how many rows `add_later` would have to add: decode rows, and one for each step."""
    (rows,) = only_row(
        connection,
        f"SELECT coalesce(sum(decode_rows + 1), 0)::BIGINT FROM steps WHERE {_INSIDE}",
        {"since": since, "until": until},
    )
    return int(rows)


def add_later(
    windows: LiveWindows,
    connection: duckdb.DuckDBPyConnection,
    since: float,
    until: float,
    names: Mapping[int, BucketName],
) -> None:
    """Add what ended in (since, until], Unix seconds, to windows that stand at `since`. `names`: of all buckets."""
    span = {"since": since, "until": until}
    first, last, began = only_row(
        connection, f"SELECT min(id), max(id), min(ts - duration_ms / 1000) FROM steps WHERE {_INSIDE}", span
    )
    if first is not None:
        windows.recorded_since(began)
        for cell, steps, running in connection.execute(
            f"""SELECT floor(ts / {CELL_SECONDS})::BIGINT, count(*), sum(running)::BIGINT FROM steps
                WHERE id BETWEEN $first AND $last AND {_INSIDE} GROUP BY ALL""",
            {**span, "first": first, "last": last},
        ).fetchall():
            windows.add_load(cell, steps, running)
        for batch in _batches(connection, {**span, "first": first, "last": last}):
            windows.add(batch, names)
    for engine, gap_since, gap_until in connection.execute(
        f"SELECT engine, since, ts FROM gaps WHERE since IS NOT NULL AND {_INSIDE} ORDER BY ts", span
    ).fetchall():
        windows.outage(engine, gap_since, gap_until)


def _batches(connection: duckdb.DuckDBPyConnection, span: dict[str, float]) -> Iterator[RowBatch]:
    """The rows of each run of an engine by themselves."""
    # The bounds on `step` let the scan skip what lies elsewhere.
    found = connection.execute(
        f"""SELECT engine_run, step, ts, sequence, bucket, post_resume::UTINYINT, {_MATRIX},
              {STEP_FACTS.removeprefix("ts, ")} FROM rows JOIN steps ON rows.step = steps.id
            WHERE rows.step BETWEEN $first AND $last AND {_INSIDE}""",
        span,
    ).fetchnumpy()
    run, step, ts, sequence, bucket, resumed, *rest = found.values()
    whole = [column.astype(np.int64) for column in rest]
    matrix, facts = np.stack(whole[:10]), np.stack(whole[10:])
    raw = RawRows(matrix, step.astype(np.int64), ts.astype(np.float64), facts)
    batch = RowBatch(raw, _ints(sequence), _ints(bucket), _ints(resumed))
    for one in np.unique(run):
        yield batch.take(run == one)


def _ints(column: Ints) -> Ints:
    return column.astype(np.int64)
