"""The open windows of one length, of all buckets at once: which sequences are in them and what these add up to.

Sequences that have gone quiet are folded into moments, so that memory is bounded by what runs at a time and not by what
a window holds. A sequence that comes back after five quiet minutes counts as another one.
"""

from __future__ import annotations

import msgspec
import numpy as np

from store.judge.arrays import columns_at_least
from store.judge.inputs import Bools, Floats, Ints
from store.judge.moments import MOMENTS, UNDER, moments
from store.judge.pairs import Pairs, bucket_of, found


class Window(msgspec.Struct):
    """One bucket's totals in one window."""

    start: float
    end: float
    sums: Floats
    """columns × MOMENTS; columns as in `store.judge.pairs.Pairs`."""
    carried: float = 0.0
    """Share of the draft steps that belongs to sequences which were already running when the window began."""

    def kept(self) -> Window:
        """The same, apart from the arrays of the other buckets."""
        return Window(self.start, self.end, self.sums.copy(), self.carried)


class ScaleMemory(msgspec.Struct):
    key: Ints
    under: Floats
    over: Floats
    """Pairs that had steps in the last five minutes, with their totals since the window began."""
    before: Ints
    """Keys that were alive when the window began, ascending."""
    folded: Floats
    """Buckets × columns × MOMENTS of the pairs that have gone quiet."""
    carried: Floats
    """Buckets: draft steps of folded pairs that were alive when the window began."""


def empty_scale() -> ScaleMemory:
    nothing, none = np.empty(0, dtype=np.int64), np.empty((0, 1))
    return ScaleMemory(nothing, none, none, nothing, np.zeros((0, 1, MOMENTS)), np.zeros(0))


class Scale:
    """Args:
    memory: changed in place.
    """

    def __init__(self, memory: ScaleMemory) -> None:
        self.memory = memory

    def __bool__(self) -> bool:
        return bool(len(self.memory.key) or self.memory.folded.any())

    def feed(self, pairs: Pairs, buckets: int) -> None:
        """Add the totals of the last five minutes. `buckets`: one more than the largest number there is."""
        memory = self.memory
        live = Pairs(memory.key, memory.under, memory.over)
        columns = max(pairs.columns, live.columns)
        live, pairs = live.widened(columns), pairs.widened(columns)
        self._grow(buckets, columns)
        goes_on, place = found(live.key, pairs.key)
        self._fold(live.take(~goes_on))
        memory.key, memory.under, memory.over = pairs.key, pairs.under.copy(), pairs.over.copy()
        memory.under[place[goes_on]] += live.under[goes_on]
        memory.over[place[goes_on]] += live.over[goes_on]

    def close(self, buckets: Bools) -> tuple[Ints, Floats, Floats]:
        """End the windows of some buckets; new ones begin at once.

        Args:
            buckets: one entry for each bucket.

        Returns:
            buckets that had draft steps, their moments (buckets × columns × MOMENTS), and the carried shares.
        """
        memory = self.memory
        live = Pairs(memory.key, memory.under, memory.over)
        closing = buckets[live.bucket]
        self._fold(live.take(closing))
        others = memory.before[~buckets[bucket_of(memory.before)]]
        memory.before = np.union1d(others, live.key[closing])
        rest = live.take(~closing)
        memory.key, memory.under, memory.over = rest.key, rest.under, rest.over

        seen = np.flatnonzero(buckets & (memory.folded[:, :, UNDER] > 0).any(axis=1))
        sums = memory.folded[seen].copy()
        steps = sums[:, 1, UNDER] if sums.shape[1] > 1 else np.zeros(len(seen))
        carried = np.divide(memory.carried[seen], steps, out=np.zeros(len(seen)), where=steps > 0)
        memory.folded[buckets] = 0
        memory.carried[buckets] = 0
        return seen, sums, carried

    def _fold(self, pairs: Pairs) -> None:
        if not len(pairs):
            return
        groups, sums = moments(pairs.under, pairs.over, pairs.bucket)
        self.memory.folded[groups] += sums
        old, _ = found(pairs.key, self.memory.before)
        if old.any() and pairs.columns > 1:
            steps = np.bincount(pairs.bucket[old], weights=pairs.under[old, 1], minlength=len(self.memory.carried))
            self.memory.carried += steps

    def _grow(self, buckets: int, columns: int) -> None:
        memory = self.memory
        memory.folded = columns_at_least(columns_at_least(memory.folded, columns, 1), buckets, 0)
        memory.carried = columns_at_least(memory.carried, buckets, 0)
