"""The newest rows of one bucket as they are stored: what each K brought lately, and which sequences do worst."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import duckdb
import numpy as np

from engine.records import CAUSES, LIMITS
from engine.speedup import Speedup
from engine.step_time.model import StepModel
from store.counts import PREFILL
from store.load import Runner
from store.metrics import divided
from store.recent import int_columns
from store.rollup import DRAFT_STEP, LOAD_BANDS, LOAD_SUMS, STEP_FACTS
from store.series_detail import load_of
from store.sql import only_row
from store.step_models import realised

LOOKED_BACK_SECONDS: Final = 900.0
MOST_ROWS: Final = 500_000
"""However fast an engine is, no more steps are looked at than have about so many rows, of all buckets."""
WORST: Final = 5
LAST_ROWS: Final = 12
ENOUGH_STEPS: Final = 8
"""Draft steps below which a sequence's acceptance says nothing."""

_SEQUENCES: Final = f"""SELECT sequence, count(*) FILTER ({DRAFT_STEP}) AS steps, sum(drafted) FILTER ({DRAFT_STEP}),
  sum(accepted) FILTER ({DRAFT_STEP}), avg(accepted / drafted) FILTER ({DRAFT_STEP}) AS alpha
FROM {{rows}} GROUP BY sequence HAVING steps >= {ENOUGH_STEPS} ORDER BY alpha, sequence LIMIT {WORST}"""
_LAST: Final = f"""SELECT sequence, ts, k_asked, limit_term, drafted, accepted, emitted, cause
FROM {{rows}} WHERE sequence IN ({{worst}})
QUALIFY row_number() OVER (PARTITION BY sequence ORDER BY step DESC) <= {LAST_ROWS} ORDER BY step"""


class Stretch(NamedTuple):
    """Steps that are looked at, Unix seconds of the first and the last; numbers as in `steps`."""

    first: int
    last: int
    since: float
    until: float


class ByK(NamedTuple):
    """Decode rows that were asked for K, lately. `batch`: mean decode rows of their steps."""

    k: int
    rows: int
    batch: float
    speedup: Speedup


class LastRow(NamedTuple):
    """`limit` and `cause` as in a row; `ts`: end of its step, Unix seconds."""

    ts: float
    k_asked: int
    limit: str
    drafted: int
    accepted: int
    emitted: int
    cause: str


class Worst(NamedTuple):
    """A sequence of low acceptance. `name`: vLLM's request id, else its name in the trace; `rows`: oldest first."""

    name: str
    steps: int
    drafted: int
    accepted: int
    alpha: float
    rows: list[LastRow]


class Recent(NamedTuple):
    since: float
    until: float
    batch: float | None
    """Mean decode rows of a step, each row of the bucket counting once; None without any."""
    context: float
    """Tokens already computed, summed over these, likewise."""
    conditional: float | None
    """Conditional acceptance α̂ = Σa / (Σa + draft steps with a < d): what the formula takes. None without drafts."""
    by_k: list[ByK]
    worst: list[Worst]


def recent_rows(
    connection: duckdb.DuckDBPyConnection, members: Mapping[int, Runner], models: Mapping[Runner, StepModel], now: float
) -> Recent | None:
    """The rows of these buckets in the last quarter of an hour, or as many of them as `MOST_ROWS` allows.

    Args:
        now: nothing later counts, Unix seconds.
    """
    stretch = _stretch(connection, now)
    if stretch is None or not members:
        return None
    rows = f"""(SELECT rows.*, {STEP_FACTS} FROM rows JOIN steps ON rows.step = steps.id
        WHERE rows.step BETWEEN {stretch.first} AND {stretch.last} AND steps.ts <= {now!r}
          AND bucket IN ({", ".join(map(str, members))}) AND cause <> {PREFILL})"""
    batch, context, by_k = _by_k(connection, rows, members, models)
    accepted, rejecting = only_row(
        connection,
        f"""SELECT coalesce(sum(accepted) FILTER ({DRAFT_STEP}), 0),
              count(*) FILTER ({DRAFT_STEP} AND accepted < drafted) FROM {rows}""",
    )
    conditional = divided(int(accepted), int(accepted) + int(rejecting))
    return Recent(stretch.since, stretch.until, batch, context, conditional, by_k, _worst(connection, rows))


def _stretch(connection: duckdb.DuckDBPyConnection, now: float) -> Stretch | None:
    first, last, rows = only_row(
        connection,
        "SELECT min(id), max(id), avg(decode_rows) FROM steps WHERE ts > ? AND ts <= ?",
        [now - LOOKED_BACK_SECONDS, now],
    )
    if first is None:
        return None
    first = max(first, last - int(MOST_ROWS / max(rows, 1.0)) + 1)
    (since,) = only_row(connection, "SELECT min(ts) FROM steps WHERE id BETWEEN ? AND ?", [first, last])
    return Stretch(int(first), int(last), float(since), now)


def _by_k(
    connection: duckdb.DuckDBPyConnection, rows: str, members: Mapping[int, Runner], models: Mapping[Runner, StepModel]
) -> tuple[float | None, float, list[ByK]]:
    """Mean batch and context, and each K; blocks of 10 s are what an interval is clustered by."""
    k, bucket, batches, contexts, *columns = int_columns(
        connection,
        f"""SELECT k_asked, bucket, sum(decode_rows) AS batches, sum(context_tokens) AS contexts,
              floor(ts / 10)::BIGINT AS cell, {LOAD_BANDS}, {LOAD_SUMS}
            FROM {rows} GROUP BY k_asked, bucket, cell, batch_band, context_band""",
    )
    count = columns[3]
    if not len(k):
        return None, 0.0, []
    found = []
    for value in np.unique(k).tolist():
        loads = {}
        for runner in dict.fromkeys(members.values()):
            ours = [number for number, other in members.items() if other == runner]
            mine = (k == value) & np.isin(bucket, ours)
            if mine.any():
                loads[runner] = load_of([column[mine] for column in columns])
        here, many = k == value, int(count[k == value].sum())
        found.append(ByK(value, many, float(batches[here].sum()) / many, realised(loads, models)))
    total = int(count.sum())
    return float(batches.sum()) / total, float(contexts.sum()) / total, found


def _worst(connection: duckdb.DuckDBPyConnection, rows: str) -> list[Worst]:
    found = connection.execute(_SEQUENCES.format(rows=rows)).fetchall()
    if not found:
        return []
    listed = ", ".join(str(sequence) for sequence, *_ in found)
    names = dict(
        connection.execute(f"SELECT id, coalesce(request, name) FROM sequences WHERE id IN ({listed})").fetchall()
    )
    last: dict[int, list[LastRow]] = {sequence: [] for sequence, *_ in found}
    for sequence, ts, k, limit, drafted, accepted, emitted, cause in connection.execute(
        _LAST.format(rows=rows, worst=listed)
    ).fetchall():
        last[sequence].append(LastRow(ts, k, LIMITS[limit], drafted, accepted, emitted, CAUSES[cause]))
    return [
        Worst(names.get(sequence) or f"sequence {sequence}", steps, int(drafted), int(accepted), alpha, last[sequence])
        for sequence, steps, drafted, accepted, alpha in found
    ]
