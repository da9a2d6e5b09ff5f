"""Acceptance at every depth of any set of buckets over a stretch of record time, with intervals by sequence."""

from __future__ import annotations

from typing import Final

import duckdb
import numpy as np

from engine.intervals import ratio_interval
from store.comparing.sides import Depth
from store.counts import Bools, Ints
from store.gather import depth_parts
from store.places import Places
from store.rollup import MAX_DEPTH
from store.segments import Stretch

_DEPTHS: Final = range(1, MAX_DEPTH + 1)


class Depths:
    """Totals of each (bucket, sequence) at every depth that is kept: `MAX_DEPTH` of them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> None:
        sums = ", ".join(f"coalesce(sum({name}[{m}]), 0)::BIGINT" for name in ("reached", "matched") for m in _DEPTHS)
        columns = connection.execute(
            f"SELECT bucket, sequence, {sums} FROM ({' UNION ALL '.join(depth_parts(stretch))}) GROUP BY ALL"
        ).fetchnumpy()
        bucket, self._sequence, *totals = (column.astype(np.int64) for column in columns.values())
        self._bucket = Places(bucket)
        self._reached, self._matched = totals[: len(_DEPTHS)], totals[len(_DEPTHS) :]

    def of(self, members: Bools) -> list[Depth]:
        """Of the buckets that `members` (indexed by bucket) marks, as deep as anything was drafted."""
        inside = self._bucket.of(members)
        _, sequence = np.unique(self._sequence[inside], return_inverse=True)
        found = []
        for depth, reached, matched in zip(_DEPTHS, self._reached, self._matched, strict=True):
            if not reached[inside].any():
                break
            found.append(
                _depth(depth, _by_sequence(sequence, reached[inside]), _by_sequence(sequence, matched[inside]))
            )
        return found


def _by_sequence(sequence: Ints, column: Ints) -> Ints:
    return np.bincount(sequence, weights=column).astype(np.int64)


def _depth(depth: int, reached: Ints, matched: Ints) -> Depth:
    interval = ratio_interval(matched, depth * reached)
    low, high = interval or (None, None)
    steps = int(reached.sum())
    return Depth(int(matched.sum()) / (depth * steps), low, high, steps, int((reached > 0).sum()))
