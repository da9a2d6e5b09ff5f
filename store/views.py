"""The views that carry the metric names, for whoever opens the file with any DuckDB client."""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.records import CAUSES, LIMITS
from store.counts import PREFILL
from store.levels import LEVELS
from store.tables import TABLES


class View(NamedTuple):
    comment: str
    query: str
    columns: dict[str, str]
    """What each of its columns is."""


def _names(values: tuple[str, ...], column: str) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"[{listed}][{column} + 1]"


_SUMS = """
  coalesce(sum(count) FILTER (decode AND drafted > 0), 0) AS steps,
  coalesce(sum(count) FILTER (decode), 0) AS decode_rows,
  coalesce(sum(count * drafted) FILTER (decode), 0) AS drafted,
  coalesce(sum(count * accepted) FILTER (decode), 0) AS accepted,
  sum(emitted) AS emitted,
  sum(count * accepted / greatest(drafted, 1)) FILTER (decode AND drafted > 0)
    / sum(count) FILTER (decode AND drafted > 0) AS alpha,
  sum(count * accepted) FILTER (decode) / nullif(sum(count * drafted) FILTER (decode), 0) AS pooled_acceptance,
  sum(count * accepted) FILTER (decode) / nullif(coalesce(sum(count * accepted) FILTER (decode), 0)
    + coalesce(sum(count) FILTER (decode AND drafted > 0 AND accepted < drafted), 0), 0) AS conditional_acceptance,
  1 + sum(count * accepted) FILTER (decode AND drafted > 0)
    / sum(count) FILTER (decode AND drafted > 0) AS mean_acceptance_length,
  sum(emitted) FILTER (decode) / nullif(sum(count) FILTER (decode), 0) AS committed_per_step,
  1 - sum(count * accepted) FILTER (decode) / nullif(sum(count * drafted) FILTER (decode), 0) AS waste_ratio,
  coalesce(sum(count) FILTER (decode AND drafted > 0), 0)
    / nullif(sum(count) FILTER (decode), 0) AS drafted_share"""

_KEYS = "b.engine, b.workload, b.context, b.temperature, b.model_version"


def _of(table: str, *names: str) -> dict[str, str]:
    return {column.name: column.comment for column in TABLES[table].columns if column.name in names}


_BUCKET: Final = _of("buckets", "engine", "workload", "context", "temperature", "model_version")
_ROW_COLUMNS: Final = {
    **_BUCKET,
    **_of("steps", "ts", "frame", "duration_ms", "k_verify", "k_draft", "running", "policy"),
    **_of("rows", "k_asked", "proposed", "drafted", "invalid", "accepted", "emitted", "post_resume"),
    "seq": "Name of the sequence, unique within a run",
    "step": "The engine's own count of steps",
    "limit": "The policy term that set k_asked",
    "context_tokens": "Tokens of the sequence already computed when the step began",
    "cause": "Why it drafted what it did: prefill (no decode row), none, full, or why it is less than k_asked",
    "decode_row": "Whether it is one: it doesn't end a prefill",
    "draft_step": "Whether it is one: a decode row that drafted something",
}
_METRIC_COLUMNS: Final = {
    **_BUCKET,
    "steps": "Draft steps: decode rows that drafted something",
    "decode_rows": "Rows that don't end a prefill",
    "drafted": "Draft tokens submitted to verification, of decode rows",
    "accepted": "Draft tokens accepted, of decode rows",
    "emitted": "Tokens committed, of all rows",
    "alpha": "Acceptance rate: mean over draft steps of accepted/drafted; NULL without draft steps",
    "pooled_acceptance": "accepted / drafted, of sums: vLLM's draft acceptance rate",
    "conditional_acceptance": "accepted / (accepted + draft steps with a rejection): the alpha of the speedup formula",
    "mean_acceptance_length": "1 + accepted / draft steps: with the bonus token",
    "committed_per_step": "Tokens committed by decode rows / decode rows",
    "waste_ratio": "(drafted - accepted) / drafted",
    "drafted_share": "Draft steps / decode rows",
}

VIEWS: Final[dict[str, View]] = {
    "row_facts": View(
        "Rows with everything spelled out: sequence, bucket, step, names of terms and causes",
        f"""SELECT s.ts, {_KEYS}, q.name AS seq, s.number AS step, s.frame, s.duration_ms, s.k_verify, s.k_draft,
  s.running, r.k_asked, {_names(LIMITS, "r.limit_term")} AS "limit", r.proposed, r.drafted, r.invalid, r.accepted,
  r.emitted, r.context AS context_tokens, {_names(CAUSES, "r.cause")} AS cause, s.policy,
  r.cause <> {PREFILL} AS decode_row, r.cause <> {PREFILL} AND r.drafted > 0 AS draft_step, r.post_resume
FROM rows r JOIN steps s ON r.step = s.id JOIN sequences q ON r.sequence = q.id JOIN buckets b ON r.bucket = b.id""",
        _ROW_COLUMNS,
    ),
    "bucket_metrics": View(
        "Figures of each bucket over all raw rows; definitions as in the report (no intervals here)",
        f"""SELECT {_KEYS}, any_value(f.sequences) AS sequences, {_SUMS}
FROM (SELECT bucket, k_asked, drafted, accepted, cause <> {PREFILL} AS decode,
        count(*) AS count, sum(emitted) AS emitted FROM rows GROUP BY ALL) r
JOIN buckets b ON r.bucket = b.id
JOIN (SELECT bucket, count(DISTINCT sequence) AS sequences FROM rows GROUP BY ALL) f ON f.bucket = r.bucket
GROUP BY ALL""",
        _METRIC_COLUMNS | {"sequences": "Sequences that have rows in the bucket"},
    ),
    **{
        f"bucket_metrics_{level.name}": View(
            f"Figures of each bucket in each cell of {level.seconds} s, from the rollup (no intervals here)",
            f"""SELECT r.cell, {_KEYS}, {_SUMS}
FROM (SELECT cell, bucket, drafted, accepted, cause <> {PREFILL} AS decode, count, emitted
      FROM rollup_{level.name}) r
JOIN buckets b ON r.bucket = b.id GROUP BY ALL""",
            _METRIC_COLUMNS | {"cell": f"Start of the cell of {level.seconds} s, Unix seconds"},
        )
        for level in LEVELS
    },
}
