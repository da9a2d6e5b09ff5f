"""Tokens a second, and the step time that a bucket's rows lived through."""

from __future__ import annotations

from typing import Final

from store.figure_sql import literals
from store.figure_sql.scope import (
    CALIBRATION,
    PREFILL,
    Scope,
    bucket_is,
    cells_until,
    in_cells,
    in_rows,
    picked,
    within,
)

_BAND: Final = "if(s.decode_rows < 1, 0, 1 << ceil(log2(s.decode_rows))::BIGINT)"
"""As `store.bands`."""


def tokens_per_second(scope: Scope, gaps: bool = True) -> str:
    """Tokens over recorded seconds: wall time without stretches of which no engine was recorded. `gaps`: there are."""
    start, end = literals.number(scope.start), literals.number(scope.end)
    if not gaps:
        return f"""{picked(scope)}
SELECT sum(emitted) AS emitted, {end} - {start} AS seconds,
  coalesce(sum(emitted), 0) / ({end} - {start}) AS tokens_per_second
FROM picked"""
    return f"""{picked(scope)},
gap AS (
  SELECT engine, greatest(since, {start}) AS since,
    least(ts, {end}) AS ts
  FROM gaps WHERE since < {end} AND ts > {start}),
piece AS (
  SELECT moment, lead(moment) OVER (ORDER BY moment) AS until
  FROM (SELECT since AS moment FROM gap UNION SELECT ts FROM gap)),
dark AS (
  SELECT coalesce(sum(until - moment), 0) AS seconds FROM piece
  WHERE (SELECT count(DISTINCT engine) FROM gap
      WHERE since <= moment AND ts >= until)
    = (SELECT count(DISTINCT engine) FROM buckets))
SELECT emitted, seconds, emitted / nullif(seconds, 0) AS tokens_per_second
FROM (SELECT coalesce(sum(emitted), 0) AS emitted FROM picked),
  (SELECT {end} - {start} - seconds AS seconds FROM dark)"""


def tokens_now(end: float, seconds: int = 10) -> str:
    """Tokens of all engines over the last whole `seconds` before `end`: the status line's rate."""
    last = int(end // 1)
    return f"""SELECT sum(emitted) AS emitted,
  sum(emitted) / ({last} - greatest({last - seconds},
    (SELECT floor(min(ts - duration_ms / 1000)) FROM steps)))
    AS tokens_per_second
FROM row_facts
WHERE ts >= {last - seconds} AND ts < {last}
  AND workload <> {literals.text(CALIBRATION)}"""


def step_time(scope: Scope) -> str:
    """What a realised speedup divides: tokens, and the durations of the steps they were made in, by the batch of the
    step, rounded up to a power of two."""
    last = """SELECT batch, sum(n) AS decode_rows, sum(emitted) AS emitted,
  sum(us) / 1e6 AS seconds_taken
FROM part GROUP BY batch ORDER BY batch"""
    row = f"""SELECT {_BAND} AS batch,
    1 AS n, r.emitted, (s.duration_ms * 1000)::UBIGINT AS us
  FROM rows r JOIN steps s ON r.step = s.id"""
    if not scope.by_cells:
        return f"""WITH part AS (
  {row}
  JOIN buckets b ON r.bucket = b.id
  WHERE {within(scope, "s.")}
    AND r.cause <> {PREFILL}{bucket_is(scope, "b.")})
{last}"""
    return f"""{cells_until(scope)},
part AS (
  SELECT batch_band AS batch, count::BIGINT AS n, emitted,
    duration_us AS us
  FROM load_10s
  WHERE {in_cells(scope)}
  UNION ALL
  {row}
  WHERE r.cause <> {PREFILL} AND {in_rows(scope)})
{last}"""


def by_k(scope: Scope) -> str:
    """The same by the draft length that was asked for, with the mean batch; of single rows."""
    return f"""SELECT k_asked, count(*) AS decode_rows,
  avg(s.decode_rows) AS batch, sum(r.emitted) AS emitted,
  sum((s.duration_ms * 1000)::UBIGINT) / 1e6 AS seconds_taken
FROM rows r JOIN steps s ON r.step = s.id
JOIN buckets b ON r.bucket = b.id
WHERE {within(scope, "s.")}
    AND r.cause <> {PREFILL}{bucket_is(scope, "b.")}
GROUP BY k_asked ORDER BY k_asked"""
