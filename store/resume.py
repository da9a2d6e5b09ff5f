"""Tells draft steps that come soon after a long stretch of K = 0: the drafter's cache may have fallen behind, so they
are kept apart and not taken for drift."""

from __future__ import annotations

from typing import Final

import numpy as np

from store.counts import PREFILL, Bools, Ints
from store.grouping import dense
from store.rowbatch import CAUSE, DRAFTED, K_ASKED

QUIET_ROWS: Final = 64
"""So many consecutive decode rows at K = 0, …"""
RESUMED_STEPS: Final = 64
"""… and so many draft steps of the sequence after them are post-resume."""


class ResumeTracker:
    """Remembers, of each sequence that is in such a stretch or just came out of one, how far it is."""

    def __init__(self) -> None:
        self._quiet: dict[int, int] = {}
        """Sequence → consecutive decode rows at K = 0."""
        self._resumed: dict[int, int] = {}
        """Sequence → draft steps that are still post-resume."""

    def mark(self, sequence: Ints, matrix: Ints) -> Ints:
        """1 for each row that is a post-resume draft step, else 0. Rows of one sequence come in the order of time."""
        marks = np.zeros(len(sequence), dtype=np.int64)
        quiet = (matrix[K_ASKED] == 0) & (matrix[CAUSE] != PREFILL)
        if not quiet.any() and not self._quiet and not self._resumed:
            return marks
        for place in self._to_walk(sequence, quiet).tolist():
            marks[place] = self._row(int(sequence[place]), bool(quiet[place]), matrix[:, place])
        return marks

    def forget(self, sequence: int) -> None:
        """It has left the engine."""
        self._quiet.pop(sequence, None)
        self._resumed.pop(sequence, None)

    def _to_walk(self, sequence: Ints, quiet: Bools) -> Ints:
        """Rows that must be looked at one by one, in order. Sequences at K = 0 throughout are only counted: on a busy
        engine that is all of them."""
        names, place = dense(sequence)
        rows = np.bincount(place, minlength=len(names))
        at_zero = np.bincount(place[quiet], minlength=len(names))
        known = np.fromiter(self._quiet.keys() | self._resumed.keys(), dtype=np.int64)
        throughout = rows == at_zero
        for number, count in zip(names[throughout].tolist(), rows[throughout].tolist(), strict=True):
            self._quiet[number] = self._quiet.get(number, 0) + count
        mixed = ~throughout & ((at_zero > 0) | np.isin(names, known))
        return np.flatnonzero(mixed[place])

    def _row(self, sequence: int, quiet: bool, row: Ints) -> int:
        if quiet:
            self._quiet[sequence] = self._quiet.get(sequence, 0) + 1
            return 0
        if row[CAUSE] == PREFILL or not row[K_ASKED]:
            return 0
        if self._quiet.pop(sequence, 0) >= QUIET_ROWS:
            self._resumed[sequence] = RESUMED_STEPS
        left = self._resumed.get(sequence, 0)
        if not left or not row[DRAFTED]:
            return 0
        if left > 1:
            self._resumed[sequence] = left - 1
        else:
            del self._resumed[sequence]
        return 1
