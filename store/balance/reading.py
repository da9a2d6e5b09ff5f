"""Reads the steps of a stretch for a balance, some at a time: nothing but raw rows tells who sat beside whom."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import duckdb
import numpy as np

from engine.step_time.columns import Floats, Ints
from store.counts import PREFILL
from store.recent import int_columns
from store.sql import only_row

ROWS_AT_ONCE: Final = 1_000_000
CELLS_AT_ONCE: Final = 2_000_000
"""Steps × workloads that are held in memory."""

_AT_ITS_WISH: Final = "greatest(drafted, least(k_asked, coalesce(proposed, drafted + invalid)))"
"""Tokens drafted for a row because it asked for them: those that were submitted, that a grammar struck or that found no
room; not those beyond its own K. Where it is not known what was proposed, those submitted or struck."""


class Span(NamedTuple):
    """Steps by number, from `first` to `last`, that ended in (`since`, `until`], Unix seconds."""

    first: int
    last: int
    since: float
    until: float
    steps: int
    rows: int
    """Decode rows."""
    shortened: bool
    """There are more before them."""


@dataclass(frozen=True, eq=False)
class Read:
    """Some steps, in the order of their numbers: facts one value a step, counts steps × workloads."""

    run: Ints
    ts: Floats
    duration: Floats
    """ms"""
    batch: Ints
    """Decode rows, those included that are in no figure."""
    context: Ints
    """Tokens already computed, summed over them."""
    prefill: Ints
    """Prompt tokens computed."""
    rows: Floats
    """Decode rows that are known, by workload."""
    emitted: Floats
    drafted: Floats


def span_of(connection: duckdb.DuckDBPyConnection, start: float, end: float, most_rows: int | None) -> Span | None:
    """The steps that ended in (start, end]; only the newest of them where they have more than `most_rows`."""
    first, last, steps, rows = _counted(connection, start, end)
    if first is None:
        return None
    if most_rows is None or rows <= most_rows:
        return Span(first, last, start, end, steps, rows, shortened=False)
    (since,) = only_row(
        connection,
        """SELECT max(ts) FROM (SELECT ts, sum(decode_rows) OVER (ORDER BY ts DESC, id DESC) AS rows FROM steps
           WHERE ts > ? AND ts <= ?) WHERE rows > ?""",
        [start, end, most_rows],
    )
    first, last, steps, rows = _counted(connection, since, end)
    return None if first is None else Span(first, last, since, end, steps, rows, shortened=True)


def buckets_in(connection: duckdb.DuckDBPyConnection, span: Span) -> list[int]:
    """Numbers of the buckets that have rows in these steps, and perhaps of a few more."""
    found = connection.execute(f"SELECT DISTINCT bucket FROM rows WHERE step BETWEEN {span.first} AND {span.last}")
    return sorted(bucket for (bucket,) in found.fetchall())


def read_steps(connection: duckdb.DuckDBPyConnection, span: Span, place: Ints, workloads: int) -> Iterator[Read]:
    """
    Args:
        place: by number of a bucket, the number of its workload, below `workloads`.
    """
    mean = max(1.0, span.rows / span.steps)
    size = max(1, min(int(ROWS_AT_ONCE / mean), CELLS_AT_ONCE // max(workloads, 1)))
    for first in range(span.first, span.last + 1, size):
        read = _read(connection, span, first, min(first + size - 1, span.last), place, workloads)
        if len(read.ts):
            yield read


def _counted(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> tuple[int | None, int, int, int]:
    found = only_row(
        connection,
        "SELECT min(id), max(id), count(*), coalesce(sum(decode_rows), 0)::BIGINT FROM steps WHERE ts > ? AND ts <= ?",
        [start, end],
    )
    return found


def _read(
    connection: duckdb.DuckDBPyConnection, span: Span, first: int, last: int, place: Ints, workloads: int
) -> Read:
    facts = connection.execute(
        f"""SELECT id, engine_run, decode_rows, context_tokens, prefill_tokens, ts, duration_ms FROM steps
            WHERE id BETWEEN {first} AND {last} AND ts > ? AND ts <= ? ORDER BY id""",
        [span.since, span.until],
    ).fetchnumpy()
    number, run, batch, context, prefill = (np.asarray(column).astype(np.int64) for column in [*facts.values()][:5])
    ts, duration = (np.asarray(column).astype(np.float64) for column in [*facts.values()][5:])
    step, bucket, emitted, drafted = int_columns(
        connection,
        f"""SELECT step, bucket, emitted, {_AT_ITS_WISH} FROM rows
            WHERE step BETWEEN {first} AND {last} AND cause <> {PREFILL}""",
    )
    where = np.full(last - first + 1, -1, dtype=np.int64)
    where[number - first] = np.arange(len(number))
    here = where[step - first]
    known = here >= 0
    if not known.all():
        here, bucket, emitted, drafted = (column[known] for column in (here, bucket, emitted, drafted))
    key = here * workloads + place[bucket]
    shape = len(number), workloads
    counts = (
        np.bincount(key, weights, minlength=math.prod(shape)).astype(np.float64).reshape(shape)
        for weights in (None, emitted, drafted)
    )
    return Read(run, ts, duration, batch, context, prefill, *counts)
