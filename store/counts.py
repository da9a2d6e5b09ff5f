"""The counts that every figure follows from: a joint histogram of rows, and totals per sequence for intervals.

`Joint` and `SequenceTotals` are arrays to compute from; a `Tally` is the mutable pair of them that live windows keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

from engine.records import CAUSES

RATIO_UNIT: Final = 232_792_560
"""lcm(1 … 22). Acceptance a/d of a step is kept as the whole number a·RATIO_UNIT//d: sums are exact in any order (for
d > 22 each step is off by less than 5e-9), so rollups, live windows and reports agree to the last digit."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

PREFILL: Final = CAUSES.index("prefill")
TOKEN_BUDGET: Final = CAUSES.index("token_budget")

COUNT_LIMIT: Final = 0xFFFF
"""Largest count of a row that can be meant: more is quarantined."""


@dataclass(frozen=True)
class Joint:
    """A joint histogram: `count` rows of each (k_asked, limit, drafted, accepted, cause, post_resume), and the tokens
    they emitted.

    Arrays of one length, int64; a key may occur more than once. `proposed` and `proposed_drafted` are sums over the
    rows whose `proposed` is known.
    """

    k_asked: Ints
    limit: Ints
    drafted: Ints
    accepted: Ints
    cause: Ints
    post_resume: Ints
    """1 for draft steps soon after a stretch of K = 0, else 0; see `store.resume`."""
    count: Ints
    emitted: Ints
    proposed: Ints
    proposed_drafted: Ints

    @cached_property
    def decode(self) -> Bools:
        """Decode rows: those that don't end a prefill."""
        decode: Bools = self.cause != PREFILL
        return decode

    @cached_property
    def draft(self) -> Bools:
        """Draft steps: decode rows that drafted something."""
        return self.decode & (self.drafted > 0)

    def rows(self, where: Bools) -> int:
        return int(self.count[where].sum())

    def tokens(self, column: Ints, where: Bools) -> int:
        """Σ count · column over the keys `where`."""
        return int((self.count * column)[where].sum())

    def take(self, where: Bools | Ints) -> Joint:
        return Joint(*(getattr(self, name)[where] for name in JOINT_COLUMNS))


JOINT_COLUMNS: Final = tuple(Joint.__dataclass_fields__)


@dataclass(frozen=True)
class SequenceTotals:
    """Totals of each sequence inside one bucket (or pool) and window; each sequence once. Arrays of one length.

    `ratio` is Σ accepted/drafted over the sequence's `draft_steps`, in units of 1/RATIO_UNIT.
    """

    rows: Ints
    draft_steps: Ints
    ratio: Ints

    @property
    def sequences(self) -> int:
        return len(self.rows)

    @cached_property
    def drafting(self) -> int:
        """Sequences that drafted at all: the n of an acceptance."""
        return int((self.draft_steps > 0).sum())


def sum_by_sequence(sequence: Ints, rows: Ints, draft_steps: Ints, ratio: Ints) -> SequenceTotals:
    """Add up totals of the same sequence, e.g. of several buckets that are pooled, before an interval is taken."""
    if not len(sequence):
        return SequenceTotals(rows, draft_steps, ratio)
    order = np.argsort(sequence, kind="stable")
    ordered = sequence[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return SequenceTotals(*(np.add.reduceat(column[order], starts) for column in (rows, draft_steps, ratio)))


def step_ratio(drafted: Ints, accepted: Ints) -> Ints:
    """a/d of each row in units of 1/RATIO_UNIT; 0 where nothing was drafted."""
    ratio: Ints = accepted * RATIO_UNIT // np.maximum(drafted, 1)
    return ratio


IntOrInts = TypeVar("IntOrInts", int, Ints)


def pack(
    k_asked: IntOrInts,
    limit: IntOrInts,
    drafted: IntOrInts,
    accepted: IntOrInts,
    cause: IntOrInts,
    post_resume: IntOrInts,
) -> IntOrInts:
    """One 64-bit integer for a key of the joint histogram. Counts are at most `COUNT_LIMIT`."""
    return ((((k_asked << 16 | drafted) << 16 | accepted) << 4 | limit) << 3 | cause) << 1 | post_resume


def unpack(codes: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """The inverse of `pack`: k_asked, limit, drafted, accepted, cause, post_resume."""
    return codes >> 40, codes >> 4 & 15, codes >> 24 & 0xFFFF, codes >> 8 & 0xFFFF, codes >> 1 & 7, codes & 1


class Tally:
    """Counts that grow and shrink: added to as rows come, subtracted from as cells leave a window. All integers, so
    what is subtracted is exactly what was added."""

    __slots__ = ("joint", "sequences")

    def __init__(self) -> None:
        self.joint: dict[int, list[int]] = {}
        """Packed key → rows, emitted, proposed, proposed_drafted."""
        self.sequences: dict[int, list[int]] = {}
        """Sequence → rows, draft steps, ratio."""

    def __bool__(self) -> bool:
        return bool(self.joint)

    def add(self, other: Tally | TallyChange) -> Self:
        accumulate(self.joint, other.joint)
        accumulate(self.sequences, other.sequences)
        return self

    def subtract(self, other: Tally) -> Self:
        _take_away(self.joint, other.joint)
        _take_away(self.sequences, other.sequences)
        return self

    def as_joint(self) -> Joint:
        codes = np.fromiter(self.joint, dtype=np.int64, count=len(self.joint))
        sums = np.array(list(self.joint.values()), dtype=np.int64).reshape(-1, 4)
        return Joint(*unpack(codes), *(sums[:, column] for column in range(4)))

    def as_sequence_totals(self) -> SequenceTotals:
        totals = np.array(list(self.sequences.values()), dtype=np.int64).reshape(-1, 3)
        return SequenceTotals(*(totals[:, column] for column in range(3)))


@dataclass(frozen=True)
class TallyChange:
    """What a batch of rows adds to one tally. Same shapes as `Tally`."""

    joint: Mapping[int, list[int]]
    sequences: Mapping[int, list[int]]


def accumulate(into: dict[int, list[int]], change: Mapping[int, list[int]]) -> None:
    """Add the sums of `change` to those of the same keys."""
    for key, amounts in change.items():
        have = into.get(key)
        if have is None:
            into[key] = amounts.copy()
        else:
            for place, amount in enumerate(amounts):
                have[place] += amount


def _take_away(from_: dict[int, list[int]], change: Mapping[int, list[int]]) -> None:
    for key, amounts in change.items():
        have = from_[key]
        for place, amount in enumerate(amounts):
            have[place] -= amount
        if not have[0]:
            del from_[key]
