"""The sequences of a bucket whose drafts were accepted least."""

from __future__ import annotations

from store.figure_sql.scope import PREFILL, Scope, bucket_is, within


def worst(scope: Scope, many: int = 5, least_steps: int = 8) -> str:
    """Of sequences with `least_steps` draft steps the `many` of lowest acceptance, of single rows."""
    return f"""SELECT coalesce(any_value(q.request), any_value(q.name)) AS sequence,
  count(*) AS steps, sum(drafted) AS drafted,
  sum(accepted) AS accepted, avg(accepted / drafted) AS alpha
FROM rows r JOIN steps s ON r.step = s.id
JOIN buckets b ON r.bucket = b.id
LEFT JOIN sequences q ON r.sequence = q.id
WHERE {within(scope, "s.")}
    AND r.cause <> {PREFILL} AND r.drafted > 0{bucket_is(scope, "b.")}
GROUP BY r.sequence HAVING count(*) >= {least_steps}
ORDER BY alpha, r.sequence LIMIT {many}"""
