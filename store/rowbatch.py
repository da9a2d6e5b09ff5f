"""Rows of many steps as arrays: unpacking the wire's columns, and telling impossible rows from possible ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from engine.frames import CAUSE_CODE, COLUMNS, LIMIT_CODE, UNKNOWN
from engine.records import CAUSES, LIMITS, Row
from store.counts import COUNT_LIMIT, PREFILL, Bools, Floats, Ints, step_ratio

SEQ, K_ASKED, LIMIT, PROPOSED, DRAFTED, INVALID, ACCEPTED, EMITTED, CONTEXT, CAUSE = range(len(COLUMNS))

_CLAMP: Final = 2**62
CONTEXT_LIMIT: Final = 2**32 - 1
_MOST_VERIFIED: Final = 2**32 - 1


def unpack_columns(columns: bytes, count: int) -> Ints:
    """The matrix (columns × rows) of a `PackedStep`."""
    return np.frombuffer(columns, dtype="<i4").reshape(len(COLUMNS), count).astype(np.int64)


def columns_of(rows: Sequence[Row], handles: Sequence[int]) -> Ints:
    """The same matrix from a trace's rows. Numbers beyond 2⁶² are cut there: they are impossible either way."""
    table = [
        (
            handle, row.k_asked, LIMIT_CODE[row.limit], UNKNOWN if row.proposed is None else row.proposed,
            row.drafted, row.invalid, row.accepted, row.emitted, row.context, CAUSE_CODE[row.cause],
        )
        for handle, row in zip(handles, rows, strict=True)
    ]  # fmt: skip
    try:
        matrix = np.array(table, dtype=np.int64)
    except OverflowError:
        matrix = np.array([[max(-_CLAMP, min(_CLAMP, value)) for value in line] for line in table], dtype=np.int64)
    return matrix.reshape(-1, len(COLUMNS)).T


class StepFacts(NamedTuple):
    """What a step had to do and how long it took: what a step time goes with."""

    duration_us: int
    decode_rows: int
    context_tokens: int
    """Σ over its decode rows of the tokens already computed."""
    prefill_tokens: int


def step_facts(matrix: Ints, duration_ms: float, prefill_tokens: int) -> tuple[StepFacts, int]:
    """Facts of a step and the tokens that the target verified for its decode rows, from all its rows as they came."""
    decode = matrix[CAUSE] != PREFILL
    rows = int(decode.sum())
    context = min(max(int(matrix[CONTEXT][decode].sum()), 0), _CLAMP)
    verified = min(max(int(matrix[DRAFTED][decode].sum()) + rows, 0), _MOST_VERIFIED)
    return StepFacts(round(duration_ms * 1000), rows, context, prefill_tokens), verified


def facts_of_steps(matrix: Ints, starts: Ints, duration_ms: Floats, prefill_tokens: Ints) -> tuple[Ints, Ints]:
    """The same for many steps at once, as `StepFacts` × steps. `starts`: where each step's rows begin, and the end."""
    decode = matrix[CAUSE] != PREFILL
    rows = _sums(decode.astype(np.int64), starts)
    context = np.clip(_sums(np.where(decode, matrix[CONTEXT], 0), starts), 0, _CLAMP)
    drafted = np.clip(_sums(np.where(decode, matrix[DRAFTED], 0), starts), -_CLAMP, _CLAMP)
    duration_us = np.rint(duration_ms * 1000).astype(np.int64)
    return np.stack([duration_us, rows, context, prefill_tokens]), np.clip(drafted + rows, 0, _MOST_VERIFIED)


def _sums(values: Ints, starts: Ints) -> Ints:
    ends = np.concatenate([[0], np.cumsum(values)])
    sums: Ints = ends[starts[1:]] - ends[starts[:-1]]
    return sums


@dataclass(frozen=True)
class RawRows:
    """Rows whose sequences are still handles. `matrix`: columns × rows; the others: one value a row."""

    matrix: Ints
    step: Ints
    ts: np.ndarray[tuple[int], np.dtype[np.float64]]
    facts: Ints
    """Facts × rows: what each row's step was like; see `StepFacts`."""

    def take(self, where: Bools | Ints) -> RawRows:
        return RawRows(self.matrix[:, where], self.step[where], self.ts[where], self.facts[:, where])

    def __len__(self) -> int:
        return len(self.step)


def join(parts: Sequence[RawRows]) -> RawRows:
    if len(parts) == 1:
        return parts[0]
    return RawRows(
        np.concatenate([part.matrix for part in parts], axis=1),
        np.concatenate([part.step for part in parts]),
        np.concatenate([part.ts for part in parts]),
        np.concatenate([part.facts for part in parts], axis=1),
    )


REASONS: Final = (
    "a count is negative",
    "accepted more than was drafted",
    "emitted more than was accepted and one",
    "a count is too large to be meant",
    "limit or cause is no known code",
)


def impossible(matrix: Ints) -> Ints:
    """0 for a possible row, else 1 + the index of the first of `REASONS` that fits."""
    counts = matrix[[K_ASKED, DRAFTED, INVALID, ACCEPTED, EMITTED]]
    proposed, context = matrix[PROPOSED], matrix[CONTEXT]
    negative = (counts < 0).any(axis=0) | (context < 0) | ((proposed < 0) & (proposed != UNKNOWN))
    large = (counts > COUNT_LIMIT).any(axis=0) | (context > CONTEXT_LIMIT) | (proposed > COUNT_LIMIT)
    unknown = (
        (matrix[LIMIT] < 0) | (matrix[LIMIT] >= len(LIMITS)) | (matrix[CAUSE] < 0) | (matrix[CAUSE] >= len(CAUSES))
    )
    verdict = np.zeros(matrix.shape[1], dtype=np.int64)
    checks = (negative, matrix[ACCEPTED] > matrix[DRAFTED], matrix[EMITTED] > matrix[ACCEPTED] + 1, large, unknown)
    for number, failed in reversed(list(enumerate(checks, 1))):
        verdict[failed] = number
    return verdict


@dataclass(frozen=True)
class RowBatch:
    """Possible rows with their global sequence and bucket. Arrays of one length; `matrix` as in `RawRows`."""

    raw: RawRows
    sequence: Ints
    bucket: Ints
    post_resume: Ints
    """1 for post-resume draft steps, else 0."""

    def __len__(self) -> int:
        return len(self.raw)

    def take(self, where: Bools | Ints) -> RowBatch:
        return RowBatch(self.raw.take(where), self.sequence[where], self.bucket[where], self.post_resume[where])

    @property
    def draft(self) -> Bools:
        """Draft steps."""
        draft: Bools = (self.raw.matrix[CAUSE] != PREFILL) & (self.raw.matrix[DRAFTED] > 0)
        return draft

    def ratios(self) -> Ints:
        """accepted/drafted of draft steps in units of 1/RATIO_UNIT, 0 elsewhere."""
        return np.where(self.draft, step_ratio(self.raw.matrix[DRAFTED], self.raw.matrix[ACCEPTED]), 0)
