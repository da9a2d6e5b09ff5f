"""Tables of what engines did and what was done to them: runs, buckets, sequences, steps, rows and events."""

from __future__ import annotations

from typing import Final, get_args

from engine.records import CAUSES, LIMITS, Probe
from store.columns import Table, columns

PROBES: Final[tuple[Probe, ...]] = get_args(Probe)

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

RECORD_TABLES: Final[dict[str, Table]] = {
    "engines": Table(
        "Runs of engines: one row for each process of an engine that was recorded",
        columns(
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
        columns(
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
        columns(
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
        columns(
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
        columns(
            "step BIGINT: Step",
            "sequence UINTEGER: Sequence",
            "bucket UINTEGER: Bucket",
            *_COUNTS,
            "post_resume BOOLEAN: A draft step among the first 64 of a sequence after at least 64 rows at K = 0",
        ),
    ),
    "quarantine": Table(
        "Impossible rows, set apart as they came; in no figure. Kept as long as rows",
        columns(
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
        columns(
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
        columns(
            "ts DOUBLE: Unix seconds",
            "actor VARCHAR: Who",
            "action VARCHAR: What",
            "workload VARCHAR: For which workload; NULL for all",
            "before VARCHAR: What it replaced, JSON",
            "after VARCHAR: What holds since, JSON",
            "policy BIGINT: Policy version that it made",
            "why VARCHAR: Reason given",
            "numbers VARCHAR: The figures that it was decided by, JSON",
        ),
    ),
    "gaps": Table(
        "Stretches of which nothing is known",
        columns(
            "engine VARCHAR: Name of the engine",
            "ts DOUBLE: End of the stretch, Unix seconds",
            "frames_lost BIGINT: Numbered frames that never arrived; 0 for an outage",
            "since DOUBLE: Start of the stretch, Unix seconds, where known",
            "reason VARCHAR: Why, where known",
        ),
    ),
    "observations": Table(
        "What an engine counted between two moments, as others recorded it: no rows are known, only sums",
        columns(
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
    "states": Table(
        "What a station knew when a recording began; opaque",
        columns("ts DOUBLE: Unix seconds", "state VARCHAR: JSON"),
    ),
}  # fmt: skip
