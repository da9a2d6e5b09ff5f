"""What speaks for an alert: acceptance at a depth in its windows, step time in them, and the alert as it is kept."""

from __future__ import annotations

from store.figure_sql import literals
from store.figure_sql.scope import Scope, bucket_is


def at_depth(scope: Scope, depth: int) -> str:
    """Acceptance at `depth` of the cells that begin in [start, end), without probe rows and post-resume steps; n and
    what it is worth are of sequences that drafted so deep."""
    start, end = literals.number(scope.start), literals.number(scope.end)
    parts = "\n  UNION ALL\n  ".join(
        f"SELECT sequence, reached[{depth}] AS steps, matched[{depth}] AS matched\n"
        f"  FROM {table}\n  WHERE cell >= {start} AND cell < {end}\n    AND bucket IN (FROM bucket)"
        for table in ("sequence_rollup_10s", "sequence_totals")
    )
    return f"""WITH bucket AS (
  SELECT id FROM buckets WHERE true{bucket_is(scope)}),
part AS (
  {parts}),
per AS (
  SELECT sequence, sum(steps) AS steps, sum(matched) AS matched
  FROM part GROUP BY sequence)
SELECT sum(matched) / ({depth} * sum(steps)) AS acceptance,
  count(*) AS n, sum(steps) ** 2 / sum(steps ** 2) AS n_effective
FROM per WHERE steps > 0"""


def record(alert: int) -> str:
    """The whole alert as the judge keeps it: evidence, causes, what the operator did about it."""
    return f"""SELECT kind, severity, state, pending_since, started, ended,
  record
FROM alerts WHERE id = {alert}"""


def observed(start: float, end: float, version: str | None) -> str:
    """Sums of an engine of which only the counters are known, of stretches inside [start, end]."""
    of = "" if version is None else f"\n    AND model_version = {literals.text(version)}"
    return f"""SELECT steps, drafted, accepted, emitted,
  accepted / nullif(drafted, 0) AS pooled_acceptance,
  1 + accepted / nullif(steps, 0) AS mean_acceptance_length,
  (drafted - accepted) / nullif(drafted, 0) AS waste_ratio
FROM (SELECT sum(drafts) AS steps, sum(draft_tokens) AS drafted,
  sum(accepted_tokens) AS accepted, sum(generation_tokens) AS emitted
  FROM observations o JOIN engines e ON o.engine_run = e.id
  WHERE o.since >= {literals.number(start)}
    AND o.ts <= {literals.number(end)}{of})"""
