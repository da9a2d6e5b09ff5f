"""A few sums per 10-s cell for the last six hours: what a time series or a sparkline of a bucket is drawn from."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from store.counts import RATIO_UNIT, Ints
from store.figures import SeriesPoint
from store.levels import CELL_SECONDS
from store.metrics import divided

KEPT_SECONDS: Final = 6 * 3600
_CELLS: Final = KEPT_SECONDS // CELL_SECONDS

DRAFT_STEPS, RATIO, DRAFTED, ACCEPTED, DECODE_ROWS, K_SUM, EMITTED = range(7)
_SUMS: Final = 7


class Ring:
    """`columns` whole-number sums for each 10-s cell of the last six hours. Memory is fixed."""

    def __init__(self, columns: int = _SUMS) -> None:
        self._sums = np.zeros((_CELLS, columns), dtype=np.int64)
        self._cell = np.full(_CELLS, -1, dtype=np.int64)

    def add(self, cell: int, sums: Ints | list[int]) -> None:
        """Add to cell number `cell` (Unix seconds // 10), unless a later turn of the ring holds its place."""
        place = cell % _CELLS
        if self._cell[place] > cell:
            return
        if self._cell[place] < cell:
            self._cell[place] = cell
            self._sums[place] = 0
        self._sums[place] += sums

    def restore(self, cells: Ints, sums: Ints) -> None:
        """Add to many cells at once; `cells` are distinct, ascending, and none is older than what is there."""
        recent = cells > cells[-1] - _CELLS
        cells, sums = cells[recent], sums[recent]
        places = cells % _CELLS
        self._sums[places[self._cell[places] != cells]] = 0
        self._cell[places] = cells
        self._sums[places] += sums

    def read(self, first: int, last: int) -> Ints:
        """Sums of cells `first` … `last` inclusive, cells × columns; zero where nothing came."""
        cells = np.arange(first, last + 1)
        places = cells % _CELLS
        return np.where((self._cell[places] == cells)[:, None], self._sums[places], 0)


class Range(NamedTuple):
    """Cells of 10 s that a series is made of: number of the first, how many a point has, how many points."""

    first: int
    size: int
    points: int

    @property
    def last(self) -> int:
        return self.first + self.points * self.size - 1

    @property
    def cell_seconds(self) -> int:
        """Length of a point."""
        return self.size * CELL_SECONDS


def range_of(seconds: float, points_wanted: int, now: float) -> Range:
    """The last `seconds` before `now` in about as many points as are wanted; no more than is kept."""
    seconds = min(seconds, KEPT_SECONDS - CELL_SECONDS)
    size = max(1, math.ceil(seconds / max(1, points_wanted) / CELL_SECONDS))
    count = math.ceil(seconds / CELL_SECONDS / size)
    return Range((int(now // CELL_SECONDS) // size - count + 1) * size, size, count)


def grouped(sums: Ints, size: int) -> Ints:
    """Add up every `size` cells; the number of cells is a multiple of it."""
    added: Ints = sums.reshape(-1, size, sums.shape[1]).sum(axis=1)
    return added


def points(sums: Ints, load: Ints, first_cell: int, size: int, recorded: tuple[float, float]) -> list[SeriesPoint]:
    """Points of `size` cells each; those outside recorded time are left out.

    Args:
        sums: cells × the seven sums of a bucket, from cell number `first_cell` on.
        load: cells × (steps, Σ running) of the engines.
        recorded: from when to when there are records; tokens/s of a cell that is cut go by what is inside.
    """
    made = []
    rows = zip(grouped(sums, size).tolist(), grouped(load, size).tolist(), strict=True)
    for number, (cell, (steps, running)) in enumerate(rows):
        start = (first_cell + number * size) * CELL_SECONDS
        end = start + size * CELL_SECONDS
        seconds = min(end, recorded[1]) - max(start, recorded[0])
        if seconds <= 0:
            continue
        made.append(
            SeriesPoint(
                ts=float(end),
                alpha=divided(cell[RATIO], RATIO_UNIT * cell[DRAFT_STEPS]),
                waste=divided(cell[DRAFTED] - cell[ACCEPTED], cell[DRAFTED]),
                executed_k=divided(cell[K_SUM], cell[DECODE_ROWS]),
                tokens_per_second=cell[EMITTED] / max(seconds, 1.0),
                running=divided(running, steps),
                accepted_length=None if not cell[DRAFT_STEPS] else 1 + cell[ACCEPTED] / cell[DRAFT_STEPS],
            )
        )
    return made
