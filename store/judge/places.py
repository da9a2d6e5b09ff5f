"""The judge's own numbers of buckets, so that what it remembers also holds in a store that numbers them otherwise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from store.buckets import BucketName
from store.figures import BucketKey
from store.judge.inputs import Ints


class Places:
    """Args:
    names: the store's number of a bucket → its name; may grow.
    known: the judge's own numbers; changed in place.
    """

    def __init__(self, names: Mapping[int, BucketName], known: dict[int, BucketName]) -> None:
        self._store = names
        self.names = known
        self._own = {name: number for number, name in known.items()}
        self._size = max(known, default=-1) + 1
        self._table = np.full(0, -1, dtype=np.int64)

    def __len__(self) -> int:
        """One more than the largest number."""
        return self._size

    def of(self, buckets: Ints) -> Ints:
        """Own numbers of the store's.

        Raises:
            KeyError: a bucket has no name.
        """
        if not len(buckets):
            return buckets
        missing = int(buckets.max()) + 1 - len(self._table)
        if missing > 0:
            self._table = np.concatenate([self._table, np.full(missing, -1, dtype=np.int64)])
        own = self._table[buckets]
        if (own < 0).any():
            for bucket in np.unique(buckets[own < 0]).tolist():
                self._table[bucket] = self._number(self._store[bucket])
            own = self._table[buckets]
        return own

    def find(self, engine: str, key: BucketKey) -> int | None:
        name = (engine, key.workload, key.context, key.temperature, key.model_version)
        return self._own.get(name)  # type: ignore[arg-type]

    def of_engine(self, engine: str) -> list[int]:
        return [number for number, name in self.names.items() if name[0] == engine]

    def forget(self, number: int) -> None:
        """The number may be given to another bucket."""
        del self._own[self.names.pop(number)]
        self._table[self._table == number] = -1

    def _number(self, name: BucketName) -> int:
        found = self._own.get(name)
        if found is None:
            free = self._size if len(self.names) == self._size else min(set(range(self._size)) - self.names.keys())
            found = self._own[name] = free
            self.names[found] = name
            self._size = max(self._size, found + 1)
        return found


def key_of(name: BucketName) -> BucketKey:
    return BucketKey(*name[1:])
