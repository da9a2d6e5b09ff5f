"""The store's tables, version 2: names, types, and the comments that every DuckDB client can read.

Raw rows hold counts and small integers only; names of terms and causes are spelled out by the views. Whatever is
derived is derived by a view, a rollup or `store.metrics`, never stored beside the counts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.records import CAUSES, LIMITS
from store.counts import RATIO_UNIT
from store.levels import LEVELS, Level

PROBES: Final = ("k0", "deep", "recover")


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

_RECORDS: Final[dict[str, Table]] = {
    "meta": Table(
        "One row: what this file is",
        _columns(
            "schema_version INTEGER: Version of tables and views; a newer one is refused, an older one migrated",
            "duckdb_version VARCHAR: DuckDB that created or last migrated the file",
            "created DOUBLE: Unix seconds",
        ),
    ),
    "progress": Table(
        "How far each kind of housekeeping has come",
        _columns(
            "name VARCHAR: A rollup, by its table; raw_from: what is older was removed from steps and rows",
            "up_to DOUBLE: Steps that ended before this moment (Unix seconds) are dealt with",
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
            "decode_rows UINTEGER: Its decode rows: the batch that a step time goes with",
            "verified UINTEGER: Tokens that the target computed for them, drafts included",
            "context_tokens UBIGINT: Tokens of their sequences already computed when the step began",
        ),
    ),
    "rows": Table(
        "One sequence in one step that committed or verified tokens: the facts that everything else follows from",
        _columns(
            "step BIGINT: Step",
            "sequence UINTEGER: Sequence",
            "bucket UINTEGER: Bucket",
            *_COUNTS,
            "post_resume BOOLEAN: A draft step among the first 64 of a sequence after at least 64 rows at K = 0",
        ),
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
    "observations": Table(
        "What an engine counted between two moments, as others recorded it: no rows are known, only sums",
        _columns(
            "engine_run UINTEGER: Run, as far as it is known",
            "since DOUBLE: Start of the stretch, Unix seconds",
            "ts DOUBLE: Its end",
            "drafts UBIGINT: Draft steps",
            "draft_tokens UBIGINT: Draft tokens submitted to verification",
            "accepted_tokens UBIGINT: Draft tokens accepted",
            "accepted_per_position UBIGINT[]: Draft steps that accepted position 1, 2, ...; empty where unknown",
            "generation_tokens UBIGINT: Tokens committed; NULL where unknown",
            "prompt_tokens UBIGINT: Prompt tokens computed; NULL where unknown",
            "running UINTEGER: Requests running at its end; NULL where unknown",
            "waiting UINTEGER: Requests waiting at its end; NULL where unknown",
            "approximate BOOLEAN: All but draft and accepted tokens was derived from rounded figures",
            "source VARCHAR: File or address it was read from",
        ),
    ),
    "alerts": Table(
        "What the judge found, in its present version: one row an alert",
        _columns(
            "id BIGINT: Number",
            "kind VARCHAR: drift, shift, speedup_floor, failing_workload, policy_mismatch, telemetry_loss, ...",
            "severity VARCHAR: info, warn or critical",
            "engine VARCHAR: Name of the engine",
            "workload VARCHAR: Of its bucket; NULL, as the three after it, for alerts of a whole engine",
            "context VARCHAR: See buckets",
            "temperature VARCHAR: See buckets",
            "model_version VARCHAR: See engines",
            "state VARCHAR: pending, firing or resolved",
            "pending_since DOUBLE: End of the first window that showed it, Unix seconds",
            "started DOUBLE: The same, once it fired; NULL for one that never did",
            "ended DOUBLE: Unix seconds",
            "text VARCHAR: One sentence",
            "record VARCHAR: The whole alert, JSON: evidence, causes, what the operator did about it",
        ),
    ),
    "remarks": Table(
        "What a reader of the figures should know of a moment, and nobody has to act on",
        _columns(
            "ts DOUBLE: Unix seconds",
            "kind VARCHAR: mix or post_resume",
            "text VARCHAR: One line",
            "record VARCHAR: The whole of it, JSON",
        ),
    ),
    "judge": Table(
        "At most one row: what the judge knew when it was last saved; opaque",
        _columns("up_to DOUBLE: Cells before this moment are in it, Unix seconds", "state VARCHAR: JSON"),
    ),
    "states": Table(
        "What a station knew when a recording began; opaque",
        _columns("ts DOUBLE: Unix seconds", "state VARCHAR: JSON"),
    ),
    "notes": Table(
        "What a reader of the figures should know, e.g. fields that were ignored",
        _columns("text VARCHAR: One line"),
    ),
}  # fmt: skip

_JOINT = (
    "bucket UINTEGER: Bucket",
    "k_asked USMALLINT: See rows",
    "limit_term UTINYINT: See rows",
    "drafted USMALLINT: See rows",
    "accepted USMALLINT: See rows",
    "cause UTINYINT: See rows; token_budget is what censors",
    "post_resume BOOLEAN: See rows",
    "count UINTEGER: Rows",
    "emitted UBIGINT: Tokens committed by them",
    "proposed UBIGINT: Tokens proposed, where known",
    "proposed_drafted UBIGINT: Tokens drafted by the rows whose proposed is known",
)

_LOAD = (
    "bucket UINTEGER: Bucket",
    "batch_band UINTEGER: Decode rows of the step, rounded up to a power of two",
    "context_band UINTEGER: Lower edge of the band of the mean context of the step's decode rows, tokens",
    "count UINTEGER: Decode rows of the bucket",
    "emitted UBIGINT: Tokens committed by them",
    "duration_us UBIGINT: Sum over them of the duration of their step, microseconds",
    "emitted_batch UBIGINT: Sum over them of tokens committed x decode rows of the step",
    "emitted_context UBIGINT: Sum over them of tokens committed x context tokens of the step",
    "prefill UBIGINT: Sum over them of the prompt tokens computed in the step",
)

_TOTALS = (
    "bucket UINTEGER: Bucket",
    "sequence UINTEGER: Sequence",
    "count UINTEGER: Rows",
    "draft_steps UINTEGER: Decode rows that drafted something",
    f"ratio BIGINT: Sum over them of accepted/drafted, in units of 1/{RATIO_UNIT}",
    "reached UINTEGER[]: For m = 1, 2, ...: draft steps with at least m drafted, without post-resume and probe rows",
    "matched UINTEGER[]: Sum over these of the accepted tokens, at most m of each",
    "resumed UINTEGER: Draft steps that are post-resume",
    "resumed_ratio BIGINT: Sum over them of accepted/drafted, in the unit of ratio",
)


def _cell(seconds: int) -> str:
    return f"cell BIGINT: Start of the cell of {seconds} s, Unix seconds"


def _leveled(level: Level) -> dict[str, Table]:
    span = f"{level.seconds} s"
    return {
        f"rollup_{level.name}": Table(
            f"Joint histogram of the rows of a bucket in a cell of {span}; rows of one key add up",
            _columns(_cell(level.seconds), *_JOINT),
        ),
        f"load_{level.name}": Table(
            f"Step times that the decode rows of a bucket lived through in a cell of {span}; rows of one key add up",
            _columns(_cell(level.seconds), *_LOAD),
        ),
    }


_ROLLUPS: Final[dict[str, Table]] = {
    **{name: table for level in LEVELS for name, table in _leveled(level).items()},
    "sequence_rollup_10s": Table(
        "Totals of a sequence in a bucket in a cell of 10 s, for intervals by sequence; rows of one key add up",
        _columns(_cell(LEVELS[0].seconds), *_TOTALS),
    ),
    "sequence_totals": Table(
        "The same of whole sequences, booked in the cell of their last row, once their cells were removed",
        _columns(_cell(LEVELS[0].seconds), *_TOTALS),
    ),
    "step_times": Table(
        "Histogram of step durations by what a step had to do, by the hour; rows of one key add up",
        _columns(
            _cell(3600),
            "engine_run UINTEGER: Run",
            "half UTINYINT: Parity of the step's 10-s cell: one half checks what the other predicts",
            "k_verify USMALLINT: See steps",
            "k_draft USMALLINT: See steps",
            "batch UINTEGER: decode_rows of steps",
            "context_band UINTEGER: As in load_10s",
            "prefill_band UINTEGER: Lower edge of the band of the prompt tokens computed",
            "duration_bin INTEGER: floor(ln(duration in ms) / ln(1.02))",
            "count UINTEGER: Steps",
            "duration_us UBIGINT: Their durations, microseconds",
            "tokens UBIGINT: Their verified tokens",
            "context UBIGINT: Their context tokens",
            "prefill UBIGINT: Their prompt tokens",
        ),
    ),
}  # fmt: skip

TABLES: Final[dict[str, Table]] = {**_RECORDS, **_ROLLUPS}
