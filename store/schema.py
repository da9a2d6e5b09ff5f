"""The store's tables and views, version 1: names, types, and the comments that every DuckDB client can read.

Raw rows hold counts and small integers only; names of terms and causes are spelled out by the views. Whatever is
derived is derived by a view, a rollup or `store.metrics`, never stored beside the counts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb

from engine.records import CAUSES, LIMITS

SCHEMA_VERSION: Final = 1

RATIO_UNIT: Final = 232_792_560
"""lcm(1 … 22). Acceptance a/d of a step is kept as the whole number a·RATIO_UNIT//d: sums are exact in any order (for
d > 22 each step is off by less than 5e-9), so rollups, live windows and reports agree to the last digit."""

PROBES: Final = ("k0", "deep", "recover")

CELL_SECONDS: Final = 10


class Column(NamedTuple):
    name: str
    type: str
    comment: str


class Table(NamedTuple):
    comment: str
    columns: tuple[Column, ...]


def _columns(*lines: str) -> tuple[Column, ...]:
    """Read `name TYPE: comment` lines."""
    parsed = []
    for line in lines:
        head, comment = line.split(": ", 1)
        name, kind = head.split(" ", 1)
        parsed.append(Column(name, kind, comment))
    return tuple(parsed)


_COUNTS = (
    "k_asked USMALLINT: Draft length that the policy asked for this sequence, tokens",
    "limit_term UTINYINT: Index of the policy term that set k_asked: " + " ".join(LIMITS),
    "proposed USMALLINT: Tokens the drafter proposed; NULL where unknown (async scheduling)",
    "drafted USMALLINT: Tokens submitted to verification, without those a grammar struck",
    "invalid USMALLINT: Proposed tokens that a grammar struck",
    "accepted USMALLINT: Draft tokens accepted",
    "emitted USMALLINT: Tokens committed by the engine",
    "context UINTEGER: Tokens of the sequence already computed when the step began",
    "cause UTINYINT: Index of the reason for drafted: " + " ".join(CAUSES),
)

TABLES: Final[dict[str, Table]] = {
    "meta": Table(
        "One row: what this file is",
        _columns(
            "schema_version INTEGER: Version of tables and views; a newer one is refused, an older one migrated",
            "duckdb_version VARCHAR: DuckDB that created or last migrated the file",
            "created DOUBLE: Unix seconds",
            "rolled_up_to DOUBLE: Steps that ended before this moment (Unix seconds) are in the rollups",
        ),
    ),
    "engines": Table(
        "Runs of engines: one row for each process of an engine that was recorded",
        _columns(
            "id UINTEGER: Run, referred to as engine_run",
            "engine VARCHAR: Name of the engine; a later run of the same name is a restart",
            "boot VARCHAR: Unique for each engine process",
            "ts DOUBLE: Start, Unix seconds",
            "vllm VARCHAR: vLLM version",
            "target VARCHAR: Target model with revision, dtype and fingerprint where known",
            "drafter VARCHAR: Drafter, likewise",
            "method VARCHAR: Speculation method",
            "model_version VARCHAR: Identity of target, drafter, method and vLLM in one string",
            "max_k UINTEGER: Start-up maximum of the draft length",
            "batch_k VARCHAR: free, or fixed where the method allows only its maximum as batch K",
            "max_num_seqs UINTEGER: Most sequences in a batch",
            "data_parallel_size UINTEGER: Ranks; above 1 the batch K is never moved",
            "device VARCHAR: cpu or cuda",
            "configured VARCHAR: Policy as the operator asked for it, JSON",
            "resolved VARCHAR: Policy as the engine says it will execute it, JSON",
            "record VARCHAR: The whole engine record, JSON",
            "last_frame BIGINT: Number of the last frame stored; NULL for runs read from a trace",
            "last_ts DOUBLE: When it was recorded, Unix seconds",
        ),
    ),
    "buckets": Table(
        "Buckets: engine x workload x context x temperature x model version",
        _columns(
            "id UINTEGER: Referred to as bucket",
            "engine VARCHAR: Name of the engine",
            "workload VARCHAR: Tag as counted: a tag, untagged, other, or unattributed",
            "context VARCHAR: Half-open range of tokens already computed, e.g. 0-512",
            "temperature VARCHAR: 0, (0,0.5], (0.5,1], >1, or unknown",
            "model_version VARCHAR: See engines",
        ),
    ),
    "sequences": Table(
        "Requests as they arrived",
        _columns(
            "id UINTEGER: Referred to as sequence",
            "engine_run UINTEGER: Run that serves it",
            "name VARCHAR: Name in traces, unique within a run",
            "request VARCHAR: vLLM's request id, where known",
            "ts DOUBLE: Arrival, Unix seconds",
            "workload VARCHAR: Tag as counted; never rewritten",
            "tag VARCHAR: Tag as it came, where it is not the one counted",
            "temperature DOUBLE: Sampling temperature; NULL where the request is unknown",
            "prompt_tokens UINTEGER: Length of the prompt",
            "disable_speculation BOOLEAN: The request's own hint",
            "lane VARCHAR: speculative or vanilla",
            "hint_error VARCHAR: A malformed hint, as it came; the default held",
        ),
    ),
    "steps": Table(
        "Engine steps that committed or verified something",
        _columns(
            "id BIGINT: Referred to as step",
            "engine_run UINTEGER: Run",
            "frame BIGINT: Number of the frame it came in",
            "number BIGINT: The engine's own count of steps",
            "ts DOUBLE: End of the step, Unix seconds",
            "duration_ms DOUBLE: Duration by the monotonic clock",
            "k_verify USMALLINT: Batch K in force when the drafts verified here were proposed",
            "k_draft USMALLINT: K asked of the drafter at the end of this step",
            "running UINTEGER: Sequences scheduled",
            "waiting UINTEGER: Sequences waiting",
            "prefill_tokens UINTEGER: Prompt tokens computed in this step",
            "probe UTINYINT: Index of the kind of probe: " + " ".join(PROBES) + "; NULL for none",
            "policy BIGINT: Version of the policy in force",
            "limit_draft UTINYINT: Index of the policy term that set k_draft, as limit_term of rows",
        ),
    ),
    "rows": Table(
        "One sequence in one step that committed or verified tokens: the facts that everything else follows from",
        _columns("step BIGINT: Step", "sequence UINTEGER: Sequence", "bucket UINTEGER: Bucket", *_COUNTS),
    ),
    "quarantine": Table(
        "Impossible rows, set apart as they came; in no figure",
        _columns(
            "step BIGINT: Step",
            "engine_run UINTEGER: Run",
            "name VARCHAR: Name of the sequence",
            "ts DOUBLE: End of the step, Unix seconds",
            *(
                f"{line.split(' ', 1)[0]} BIGINT: As it came. See rows"
                for line in _COUNTS
            ),
            "reason VARCHAR: What is impossible about it",
        ),
    ),
    "finishes": Table(
        "Sequences that left the engine",
        _columns(
            "engine_run UINTEGER: Run",
            "name VARCHAR: Name of the sequence",
            "sequence UINTEGER: Sequence; NULL where its arrival was never seen",
            "ts DOUBLE: Unix seconds",
            "reason VARCHAR: stop, length, abort, …",
            "output_tokens BIGINT: Tokens of the answer",
        ),
    ),
    "controls": Table(
        "Actions of the operator and of the policy",
        _columns(
            "ts DOUBLE: Unix seconds",
            "actor VARCHAR: Who",
            "action VARCHAR: What",
            "workload VARCHAR: For which workload; NULL for all",
            "before VARCHAR: What it replaced, JSON",
            "after VARCHAR: What holds since, JSON",
            "policy BIGINT: Policy version that it made",
            "why VARCHAR: Reason given",
        ),
    ),
    "gaps": Table(
        "Stretches of which nothing is known",
        _columns(
            "engine VARCHAR: Name of the engine",
            "ts DOUBLE: End of the stretch, Unix seconds",
            "frames_lost BIGINT: Numbered frames that never arrived; 0 for an outage",
            "since DOUBLE: Start of the stretch, Unix seconds, where known",
            "reason VARCHAR: Why, where known",
        ),
    ),
    "states": Table(
        "What a station knew when a recording began; opaque",
        _columns("ts DOUBLE: Unix seconds", "state VARCHAR: JSON"),
    ),
    "notes": Table(
        "What a reader of the figures should know, e.g. fields that were ignored",
        _columns("text VARCHAR: One line"),
    ),
    "rollup_10s": Table(
        "Joint histogram of the rows of a bucket in a cell of 10 s; rows of one key add up",
        _columns(
            "cell BIGINT: Start of the cell, Unix seconds",
            "bucket UINTEGER: Bucket",
            "k_asked USMALLINT: See rows",
            "limit_term UTINYINT: See rows",
            "drafted USMALLINT: See rows",
            "accepted USMALLINT: See rows",
            "cause UTINYINT: See rows; token_budget is what censors",
            "count UINTEGER: Rows",
            "emitted UBIGINT: Tokens committed by them",
            "proposed UBIGINT: Tokens proposed, where known",
            "proposed_drafted UBIGINT: Tokens drafted by the rows whose proposed is known",
        ),
    ),
    "sequence_rollup_10s": Table(
        "Totals of a sequence in a bucket in a cell of 10 s, for intervals by sequence; rows of one key add up",
        _columns(
            "cell BIGINT: Start of the cell, Unix seconds",
            "bucket UINTEGER: Bucket",
            "sequence UINTEGER: Sequence",
            "count UINTEGER: Rows",
            "draft_steps UINTEGER: Decode rows that drafted something",
            f"ratio BIGINT: Sum over them of accepted/drafted, in units of 1/{RATIO_UNIT}",
        ),
    ),
}  # fmt: skip


def _names(values: tuple[str, ...], column: str) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"[{listed}][{column} + 1]"


_SUMS = """
  sum(count) FILTER (decode AND drafted > 0) AS steps,
  sum(count) FILTER (decode) AS decode_rows,
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

VIEWS: Final[dict[str, tuple[str, str]]] = {
    "row_facts": (
        "Rows with everything spelled out: sequence, bucket, step, names of terms and causes",
        f"""SELECT s.ts, {_KEYS}, q.name AS seq, s.number AS step, s.frame, s.duration_ms, s.k_verify, s.k_draft,
  s.running, r.k_asked, {_names(LIMITS, "r.limit_term")} AS "limit", r.proposed, r.drafted, r.invalid, r.accepted,
  r.emitted, r.context AS context_tokens, {_names(CAUSES, "r.cause")} AS cause, s.policy,
  r.cause <> {CAUSES.index("prefill")} AS decode_row,
  r.cause <> {CAUSES.index("prefill")} AND r.drafted > 0 AS draft_step
FROM rows r JOIN steps s ON r.step = s.id JOIN sequences q ON r.sequence = q.id JOIN buckets b ON r.bucket = b.id""",
    ),
    "bucket_metrics": (
        "Figures of each bucket over all raw rows; definitions as in the report (no intervals here)",
        f"""SELECT {_KEYS}, any_value(f.sequences) AS sequences, {_SUMS}
FROM (SELECT bucket, k_asked, drafted, accepted, cause <> {CAUSES.index("prefill")} AS decode,
        count(*) AS count, sum(emitted) AS emitted FROM rows GROUP BY ALL) r
JOIN buckets b ON r.bucket = b.id
JOIN (SELECT bucket, count(DISTINCT sequence) AS sequences FROM rows GROUP BY ALL) f ON f.bucket = r.bucket
GROUP BY ALL""",
    ),
    "bucket_metrics_10s": (
        "Figures of each bucket in each cell of 10 s, from the rollup (no intervals here)",
        f"""SELECT r.cell, {_KEYS}, {_SUMS}
FROM (SELECT cell, bucket, drafted, accepted, cause <> {CAUSES.index("prefill")} AS decode, count, emitted
      FROM rollup_10s) r
JOIN buckets b ON r.bucket = b.id GROUP BY ALL""",
    ),
}


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every table and view of this version, with comments, in an empty database."""
    for name, table in TABLES.items():
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.execute(f"COMMENT ON TABLE {name} IS {_quoted(table.comment)}")
        for column in table.columns:
            connection.execute(f"COMMENT ON COLUMN {name}.{column.name} IS {_quoted(column.comment)}")
    for name, (comment, query) in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
        connection.execute(f"COMMENT ON VIEW {name} IS {_quoted(comment)}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
