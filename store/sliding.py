"""Counts over a moving stretch of time: cells are added as rows come and subtracted as they grow too old."""

from __future__ import annotations

from collections import deque

from store.counts import Tally, TallyChange


class SlidingTally:
    """The tally of the last `seconds`, in cells of `cell_seconds`; the window's edge moves a cell at a time."""

    def __init__(self, seconds: float, cell_seconds: int) -> None:
        self.seconds = seconds
        self.cell_seconds = cell_seconds
        self.total = Tally()
        self._cells: deque[tuple[int, Tally]] = deque()

    @property
    def sequences(self) -> int:
        return len(self.total.sequences)

    def add(self, cell_start: int, change: Tally | TallyChange) -> None:
        """Add what came in the 10-s cell that starts at `cell_start`."""
        number = cell_start // self.cell_seconds
        self._cell(number).add(change)
        self.total.add(change)

    def expire(self, now: float) -> bool:
        """Drop cells that began before the window of `now`; True when there were any."""
        oldest = (now - self.seconds) / self.cell_seconds
        dropped = False
        while self._cells and self._cells[0][0] < oldest:
            self.total.subtract(self._cells.popleft()[1])
            dropped = True
        return dropped

    def _cell(self, number: int) -> Tally:
        place = len(self._cells)
        while place and self._cells[place - 1][0] > number:  # rows that waited for their sequence come late
            place -= 1
        if place and self._cells[place - 1][0] == number:
            return self._cells[place - 1][1]
        cell = Tally()
        self._cells.insert(place, (number, cell))
        return cell
