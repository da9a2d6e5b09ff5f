"""Totals of each (bucket, sequence) pair, added up over cells: a sequence must count once in a window, however many
cells it spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from store.judge.arrays import columns_at_least
from store.judge.inputs import Bools, Floats, Ints

RESUMED: Final = 0
"""Column of post-resume draft steps; column m is acceptance at depth m."""

_SEQUENCE_BITS: Final = 40
_SEQUENCE: Final = (1 << _SEQUENCE_BITS - 1) - 1
RENUMBERED: Final = 1 << _SEQUENCE_BITS - 1
"""Set in the keys of sequences that were numbered by another store."""
_FEW: Final = 4096


@dataclass(frozen=True)
class Pairs:
    """Pairs with ascending, distinct keys, and their totals.

    `under` and `over` are n × columns: column 0 has post-resume draft steps and Σ accepted/drafted, column m has m
    times the draft steps of depth m and Σ min(accepted, m): over / under is the acceptance.
    """

    key: Ints
    under: Floats
    over: Floats

    def __len__(self) -> int:
        return len(self.key)

    @property
    def columns(self) -> int:
        return int(self.under.shape[1])

    @property
    def bucket(self) -> Ints:
        return bucket_of(self.key)

    def take(self, where: Bools) -> Pairs:
        return Pairs(self.key[where], self.under[where], self.over[where])

    def widened(self, columns: int) -> Pairs:
        return Pairs(self.key, columns_at_least(self.under, columns, 1), columns_at_least(self.over, columns, 1))


def no_pairs(columns: int = 1) -> Pairs:
    return Pairs(np.empty(0, dtype=np.int64), np.empty((0, columns)), np.empty((0, columns)))


def keys_of(bucket: Ints, sequence: Ints) -> Ints:
    """One number for a pair. Buckets are below 2²³."""
    return bucket << _SEQUENCE_BITS | sequence & _SEQUENCE


def bucket_of(key: Ints) -> Ints:
    return key >> _SEQUENCE_BITS


def sequence_of(key: Ints) -> Ints:
    return key & (1 << _SEQUENCE_BITS) - 1


def with_sequences(key: Ints, old: Ints, new: Ints) -> Ints:
    """The keys of the same buckets for other sequences: `new` for each of `old`, which is ascending and has them all.
    They are in no order."""
    return key >> _SEQUENCE_BITS << _SEQUENCE_BITS | new[np.searchsorted(old, sequence_of(key))]


def collapsed(parts: Sequence[Pairs]) -> Pairs:
    """The totals of all parts, whose keys may be in any order and occur more than once."""
    columns = max(part.columns for part in parts)
    wide = [part.widened(columns) for part in parts]
    key = np.concatenate([part.key for part in wide])
    if not len(key):
        return no_pairs(columns)
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    under = np.concatenate([part.under for part in wide])[order]
    over = np.concatenate([part.over for part in wide])[order]
    if len(starts) == len(key):
        return Pairs(key, under, over)
    return Pairs(key[starts], np.add.reduceat(under, starts, axis=0), np.add.reduceat(over, starts, axis=0))


def found(keys: Ints, among: Ints) -> tuple[Bools, Ints]:
    """Which keys are in the ascending `among`, and where (a place that means nothing where they are not)."""
    if not len(among):
        return np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=np.int64)
    place = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return among[place] == keys, place


class Gathering:
    """The totals of the cells since the last `take`."""

    def __init__(self, pairs: Pairs | None = None) -> None:
        self._known = pairs or no_pairs()
        self._fresh: list[Pairs] = []
        self._waiting = 0

    def __bool__(self) -> bool:
        return bool(len(self._known) or self._waiting)

    def add(self, cell: Pairs) -> None:
        """Add a cell: each pair at most once, in any order."""
        if cell.columns > self._known.columns:
            self._known = self._known.widened(cell.columns)
        known = self._known
        here, place = found(cell.key, known.key)
        if here.any():
            place, columns = place[here], cell.columns
            known.under[place, :columns] += cell.under[here]
            known.over[place, :columns] += cell.over[here]
            cell = cell.take(~here)
        self._fresh.append(cell)
        self._waiting += len(cell)
        if self._waiting > max(_FEW, len(known) // 2):
            self.totals()

    def totals(self) -> Pairs:
        """What was gathered so far."""
        if self._fresh:
            self._known = collapsed([self._known, *self._fresh])
            self._fresh, self._waiting = [], 0
        return self._known

    def take(self) -> Pairs:
        """What was gathered so far; begin again."""
        totals = self.totals()
        self._known = no_pairs(totals.columns)
        return totals
