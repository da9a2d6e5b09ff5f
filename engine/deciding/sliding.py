"""Sums over a moving stretch of time: of draft positions by sequence, and of the batches that occurred."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import numpy as np

from engine.deciding.estimates import Evidence, Loads
from engine.step_time.columns import Floats, Ints

_MOST_LOADS: Final = 64
"""Batches of other compositions are left out of a picture: they are the rarest."""


class Positions(NamedTuple):
    """Counts of some rows of one workload by draft position; as `Evidence`, with the sequence of each entry once."""

    sequence: Ints
    at_risk: Floats
    passed: Floats
    asked: Floats
    drafted: Floats


class SlidingPositions:
    """The positions of the last `seconds`. Whole numbers, so what leaves is exactly what came."""

    def __init__(self, max_k: int, seconds: float) -> None:
        self.seconds = seconds
        self._max_k = max_k
        self._sums = np.zeros((64, 2 * max_k))
        """One line a sequence: at risk, then passed."""
        self._places: dict[int, int] = {}
        self._owners: dict[int, int] = {}
        self._free: list[int] = list(range(64))
        self._asked = np.zeros((2, max_k))
        self._parts: deque[tuple[float, Ints, Floats, Floats]] = deque()

    def add(self, ts: float, positions: Positions) -> None:
        known = positions.at_risk[:, 0] > 0  # the token budget may have left a sequence nothing
        places = np.array([self._place(one) for one in positions.sequence[known].tolist()], dtype=np.int64)
        sums = np.concatenate((positions.at_risk[known], positions.passed[known]), axis=1)
        asked = np.stack((positions.asked, positions.drafted))
        self._sums[places] += sums
        self._asked += asked
        self._parts.append((ts, places, sums, asked))

    def expire(self, now: float) -> None:
        while self._parts and self._parts[0][0] <= now - self.seconds:
            _, places, sums, asked = self._parts.popleft()
            self._sums[places] -= sums
            self._asked -= asked
            for place in places[self._sums[places, 0] == 0].tolist():
                del self._places[self._owners.pop(place)]
                self._free.append(place)

    def evidence(self) -> Evidence:
        held = self._sums[self._sums[:, 0] > 0]
        return Evidence(held[:, : self._max_k], held[:, self._max_k :], self._asked[0].copy(), self._asked[1].copy())

    def _place(self, sequence: int) -> int:
        place = self._places.get(sequence)
        if place is None:
            if not self._free:
                self._free = list(range(len(self._sums), 2 * len(self._sums)))
                self._sums = np.concatenate((self._sums, np.zeros_like(self._sums)))
            place = self._places[sequence] = self._free.pop()
            self._owners[place] = sequence
        return place


class SlidingLoads:
    """The batches of the last `seconds`: steps and context tokens of each composition. A composition counts the
    rows that nothing is decided for, then those of each workload by its number."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._sums: dict[tuple[int, ...], list[int]] = {}
        self._parts: deque[tuple[float, dict[tuple[int, ...], list[int]]]] = deque()

    def add(self, ts: float, compositions: Ints, context: Ints) -> None:
        """(S, 1 + workloads) rows and (S,) context tokens of S steps."""
        part: dict[tuple[int, ...], list[int]] = {}
        for line, tokens in zip(compositions.tolist(), context.tolist(), strict=True):
            held = part.setdefault(_trimmed(line), [0, 0])
            held[0] += 1
            held[1] += tokens
        for key, (steps, tokens) in part.items():
            held = self._sums.setdefault(key, [0, 0])
            held[0] += steps
            held[1] += tokens
        self._parts.append((ts, part))

    def expire(self, now: float) -> None:
        while self._parts and self._parts[0][0] <= now - self.seconds:
            for key, (steps, tokens) in self._parts.popleft()[1].items():
                held = self._sums[key]
                held[0] -= steps
                held[1] -= tokens
                if not held[0]:
                    del self._sums[key]

    def loads(self, workloads: int) -> Loads:
        """Of the first `workloads` workloads: all that there are."""
        most = sorted(self._sums.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_LOADS]
        rows = np.zeros((len(most), workloads))
        for line, (key, _) in enumerate(most):
            rows[line, : len(key) - 1] = key[1:]
        sums = np.array([held for _, held in most], dtype=np.float64).reshape(-1, 2)
        steps = sums[:, 0]
        return Loads(steps, rows, np.array([float(key[0]) for key, _ in most]), sums[:, 1] / np.maximum(steps, 1))


def _trimmed(line: list[int]) -> tuple[int, ...]:
    """A composition under one key however many workloads were known when it was seen."""
    while len(line) > 1 and not line[-1]:
        line.pop()
    return tuple(line)
