"""Counts, acceptance rates, their interval, the mix of draft lengths and acceptance by position."""

from __future__ import annotations

from store.figure_sql.scope import Scope, is_complete, per_sequence, picked


def rates(scope: Scope) -> str:
    """Counts and rates of a bucket in one row, named as in `report --json`. `rejecting`: draft steps in which a token
    was rejected; `complete`: nothing of the window was removed meanwhile."""
    return f"""{picked(scope)}
SELECT steps, decode_rows, drafted, accepted, rejecting, emitted,
  ratio / nullif(steps, 0) AS alpha,
  accepted / nullif(drafted, 0) AS pooled_acceptance,
  accepted / nullif(accepted + rejecting, 0) AS conditional_acceptance,
  1 + accepted / nullif(steps, 0) AS mean_acceptance_length,
  committed / nullif(decode_rows, 0) AS committed_per_step,
  (drafted - accepted) / nullif(drafted, 0) AS waste_ratio,
  steps / nullif(decode_rows, 0) AS drafted_share,
  {is_complete(scope)} AS complete
FROM (SELECT sum(if(draft_step, n, 0)) AS steps,
  sum(if(decode_row, n, 0)) AS decode_rows,
  sum(if(decode_row, n * drafted, 0)) AS drafted,
  sum(if(decode_row, n * accepted, 0)) AS accepted,
  sum(if(draft_step AND accepted < drafted, n, 0)) AS rejecting,
  sum(emitted) AS emitted,
  sum(if(decode_row, emitted, 0)) AS committed,
  sum(if(draft_step, n * (accepted / drafted), 0)) AS ratio
  FROM picked)"""


def interval(scope: Scope) -> str:
    """n, and what the interval of the acceptance rate is made from: alpha, the sequences that drafted, how many equal
    ones they are worth (`n_effective`), and the standard error clustered by sequence."""
    return f"""{per_sequence(scope)},
whole AS (
  SELECT sum(ratio) / nullif(sum(steps), 0) AS alpha, sum(steps) AS y,
    count(*) AS sequences, count(*) FILTER (steps > 0) AS drafting,
    sum(steps) ** 2 / nullif(sum(steps ** 2), 0) AS n_effective
  FROM per)
SELECT sequences, drafting, alpha, n_effective,
  sqrt(drafting / nullif(drafting - 1, 0)
    * sum((ratio - alpha * steps) ** 2)) / nullif(y, 0) AS standard_error
FROM per, whole
GROUP BY sequences, drafting, alpha, n_effective, y"""


def k_mix(scope: Scope) -> str:
    """Decode rows by the draft length that was asked for them, and by the policy term that set it."""
    return f"""{picked(scope)}
SELECT k_asked, set_by, sum(n) AS decode_rows,
  sum(n) / sum(sum(n)) OVER () AS share
FROM picked WHERE decode_row
GROUP BY k_asked, set_by ORDER BY k_asked, set_by"""


def positions(scope: Scope, longest: int) -> str:
    """For each draft position up to `longest`: the share of draft steps that accepted it, and of those that accepted
    the one before."""
    return f"""{picked(scope)}
SELECT j AS position,
  sum(if(accepted >= j, n, 0)) / sum(n) AS accepted,
  sum(if(accepted >= j, n, 0))
    / nullif(sum(if(drafted >= j AND accepted >= j - 1, n, 0)), 0)
    AS given_the_one_before
FROM picked, range(1, {longest + 1}) AS t(j)
WHERE draft_step GROUP BY j ORDER BY j"""
