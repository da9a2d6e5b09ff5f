"""Finds the rows of some buckets in columns of many, without looking at all of them each time."""

from __future__ import annotations

import numpy as np

from store.counts import Bools, Ints


class Places:
    """Where the rows of each bucket stand. `buckets`: the bucket of each row, in any order."""

    def __init__(self, buckets: Ints) -> None:
        self.limit = int(buckets.max()) + 1 if len(buckets) else 0
        """One more than the highest bucket."""
        self._order = np.argsort(buckets, kind="stable")
        self._ends = np.cumsum(np.bincount(buckets, minlength=self.limit))

    def of(self, members: Bools) -> Ints:
        """Row numbers of the buckets that `members` (indexed by bucket) marks."""
        wanted = np.flatnonzero(members[: self.limit])
        if not len(wanted):
            return self._order[:0]
        starts = np.where(wanted > 0, self._ends[wanted - 1], 0)
        parts = [self._order[start:end] for start, end in zip(starts, self._ends[wanted], strict=True)]
        return np.concatenate(parts)
