"""What stands in for an unknown position: the at-risk acceptance g_j of its bucket (definitions.md, "Acceptance").

A token behind j accepted ones was the (j + 1)-th in a row, so g_{j+1} is its chance; where nobody ever drafted so far,
that of the deepest position that was drafted. Where the drafter found nothing to propose, a draft that comes by from
elsewhere is taken to find nothing either. Where no draft was ever asked for, j is the depth in the draft that is made
there. A bucket with too few rows takes what all contexts and temperatures of its workload show together, then all
workloads of the engine's model version.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from store.counts import PREFILL, TOKEN_BUDGET, Bools, Ints
from store.whatif.positions import Kind, Positions
from store.whatif.reading import Bucket, Floats

ENOUGH_ROWS: Final = 30
"""Rows at risk from which a bucket's own acceptance at a depth is taken."""


class Hazards:
    """Of each bucket (by place) and depth.

    Args:
        joint: as `Record.joint` gives it.
    """

    def __init__(self, buckets: Sequence[Bucket], joint: dict[str, Ints]) -> None:
        decode = joint["cause"] != PREFILL
        column = {name: values[decode] for name, values in joint.items()}
        asked = np.where(column["cause"] == TOKEN_BUDGET, column["drafted"], column["k_asked"])
        tested = np.minimum(asked, column["accepted"] + 1)
        self.depths = int(asked.max(initial=0))
        at_risk = self._reaching(len(buckets), column, tested)
        passed = self._reaching(len(buckets), column, np.minimum(tested, column["accepted"]))
        self.known: Bools = np.zeros(len(buckets), dtype=bool)
        """Whether anything stands in for an unknown position of a bucket."""
        self.table: Floats = np.zeros((len(buckets), self.depths + 1))
        """(buckets, depths + 1): g_1 … and, behind the deepest position, what it goes on with; 0 where not `known`."""
        self._fill(buckets, at_risk, passed)

    def chance(self, of: Positions) -> Floats:
        """The chance that a draft token is right at each position, where it doesn't hang on the draft's own depth."""
        rows, kind = of.rows, of.kind
        bucket = rows.bucket[of.row]
        behind = self.table[bucket, np.minimum(of.place, self.depths)]
        return np.select([kind == Kind.RIGHT, np.isin(kind, (Kind.BONUS, Kind.SHORT))], [1.0, behind], 0.0)

    def _reaching(self, buckets: int, column: dict[str, Ints], last: Ints) -> Floats:
        """(buckets, depths) rows whose `last` depth is j or deeper, for j = 1 …"""
        ending = np.zeros((buckets, self.depths + 1))
        np.add.at(ending, (column["bucket"], last), column["count"])
        return np.asarray(ending[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:])

    def _fill(self, buckets: Sequence[Bucket], at_risk: Floats, passed: Floats) -> None:
        levels: tuple[Callable[[Bucket], Hashable], ...] = (
            lambda bucket: bucket.place,
            lambda bucket: (bucket.runner, bucket.workload),
            lambda bucket: bucket.runner,
        )
        pools = [_pooled([level(bucket) for bucket in buckets], at_risk, passed) for level in levels]
        for bucket in buckets:
            last: float | None = None
            for depth in range(self.depths + 1):
                found = _shown(pools, bucket.place, depth)
                last = last if found is None else found
                self.table[bucket.place, depth] = last or 0.0
            self.known[bucket.place] = last is not None


def _pooled(keys: list[Hashable], at_risk: Floats, passed: Floats) -> list[list[tuple[float, float]]]:
    """Of each bucket, the rows at risk and those that passed at each depth, of all buckets that share its key."""
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    of = np.array([place[key] for key in keys], dtype=np.int64)
    sums = np.zeros((2, len(place), at_risk.shape[1]))
    for number, column in enumerate((at_risk, passed)):
        np.add.at(sums[number], of, column)
    return [list(zip(sums[0, pool].tolist(), sums[1, pool].tolist(), strict=True)) for pool in of.tolist()]


def _shown(pools: list[list[list[tuple[float, float]]]], bucket: int, depth: int) -> float | None:
    """What the first pool with enough rows shows of a depth, or the last one with any."""
    shown = [pool[bucket][depth] for pool in pools if depth < len(pool[bucket]) and pool[bucket][depth][0]]
    enough = [pool for pool in shown if pool[0] >= ENOUGH_ROWS]
    chosen = enough[0] if enough else shown[-1] if shown else None
    return None if chosen is None else chosen[1] / chosen[0]
