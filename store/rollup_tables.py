"""Tables of sums over cells of time: what is left of rows once they are removed, and what figures are made from."""

from __future__ import annotations

from typing import Final

from store.columns import Table, columns
from store.counts import RATIO_UNIT
from store.levels import LEVELS, Level

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
            columns(_cell(level.seconds), *_JOINT),
        ),
        f"load_{level.name}": Table(
            f"Step times that the decode rows of a bucket lived through in a cell of {span}; rows of one key add up",
            columns(_cell(level.seconds), *_LOAD),
        ),
    }


ROLLUP_TABLES: Final[dict[str, Table]] = {
    **{name: table for level in LEVELS for name, table in _leveled(level).items()},
    "sequence_rollup_10s": Table(
        "Totals of a sequence in a bucket in a cell of 10 s, for intervals by sequence; rows of one key add up",
        columns(_cell(LEVELS[0].seconds), *_TOTALS),
    ),
    "sequence_totals": Table(
        "The same of whole sequences, booked in the cell of their last row, once their cells were removed",
        columns(_cell(LEVELS[0].seconds), *_TOTALS),
    ),
    "quarantine_1h": Table(
        "How many rows of an hour were quarantined, of those that are no longer kept; rows of one key add up",
        columns(
            _cell(3600),
            "engine_run UINTEGER: Run",
            "reason VARCHAR: See quarantine",
            "count BIGINT: Rows",
        ),
    ),
    "step_times": Table(
        "Histogram of step durations by what a step had to do, by the hour; rows of one key add up",
        columns(
            _cell(3600),
            "engine_run UINTEGER: Run",
            "half UTINYINT: Parity of the step's 10-s cell: one half checks what the other predicts",
            "k_verify USMALLINT: See steps; where the batch K can't move, the drafts verified for a row, rounded up",
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
