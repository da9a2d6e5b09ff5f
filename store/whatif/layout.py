"""Lays positions out so that thousands of stretches of text are walked side by side.

Where a draft was wrong every policy starts a step right behind: it stops there, or before, or takes that very position
as its last token. So text falls into stretches that end at a wrong position, and their walks are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from store.counts import Ints
from store.whatif.positions import Kind, Positions


@dataclass(frozen=True)
class Layout:
    """Positions in the order of their depth in their stretch, stretches by falling length: those of depth i are
    `offset[i]` to `offset[i + 1]`, and the n-th of them belongs to the same stretch as the n-th of depth i + 1."""

    order: Ints
    """Place in `Positions` of each."""
    offset: Ints
    """(depths + 1,)"""

    @property
    def depths(self) -> int:
        return len(self.offset) - 1

    def width(self, depth: int) -> int:
        """Stretches that are longer than `depth`."""
        return int(self.offset[depth + 1] - self.offset[depth]) if depth < self.depths else 0


def layout(of: Positions) -> Layout:
    """Lay out the positions of whole sequences."""
    count = len(of)
    if not count:
        return Layout(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    starts = np.flatnonzero(np.r_[True, (of.kind[:-1] == Kind.WRONG) | of.begins[1:]])
    lengths = np.diff(np.r_[starts, count])
    by_length = np.argsort(-lengths, kind="stable")
    rank = np.empty(len(starts), dtype=np.int64)
    rank[by_length] = np.arange(len(starts))
    longest = int(lengths.max())
    longer_than = len(starts) - np.searchsorted(np.sort(lengths), np.arange(longest), side="right")
    offset = np.r_[0, np.cumsum(longer_than)]
    depth = np.arange(count) - np.repeat(starts, lengths)
    order = np.empty(count, dtype=np.int64)
    order[offset[depth] + np.repeat(rank, lengths)] = np.arange(count)
    return Layout(order, offset)
