"""Load that rows lived through, as live windows keep it: sums by band of load, in cells of time, for each engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from engine.step_time.load import LoadSums
from store.counts import Ints, accumulate

SUMS: Final = ("rows", "emitted", "duration_us", "emitted_batch", "emitted_context", "prefill")


class Runner(NamedTuple):
    """Whose step times rows are held against: another model version has other times."""

    engine: str
    model_version: str


def band_code(batch_band: Ints, context_band: Ints) -> Ints:
    """One number for a band of load."""
    return batch_band << 32 | context_band


def load_sums(entries: Iterable[tuple[int, int, list[int]]]) -> LoadSums:
    """Of (cell, band code, sums) triples."""
    table = np.array([(cell, code >> 32, code & 0xFFFFFFFF, *sums) for cell, code, sums in entries], dtype=np.int64)
    cell, batch, context, *sums = table.reshape(-1, 3 + len(SUMS)).T
    named = dict(zip(SUMS, sums, strict=True))
    duration = named.pop("duration_us") / 1000
    return LoadSums.of(cell=cell, batch_band=batch, context_band=context, duration_ms=duration, **named)


class SlidingLoad:
    """The load of the last `seconds`, in cells of `cell_seconds`, by whose step times it is held against."""

    def __init__(self, seconds: float, cell_seconds: int) -> None:
        self.seconds = seconds
        self.cell_seconds = cell_seconds
        self._cells: dict[Runner, deque[tuple[int, dict[int, list[int]]]]] = {}

    def add(self, runner: Runner, cell_start: int, load: Mapping[int, list[int]]) -> None:
        """Add what came in the 10-s cell that starts at `cell_start`."""
        number = cell_start // self.cell_seconds
        cells = self._cells.setdefault(runner, deque())
        known = next((sums for cell, sums in reversed(cells) if cell == number), None)
        if known is None:
            known = {}
            cells.append((number, known))
        accumulate(known, load)

    def expire(self, now: float) -> None:
        """Drop cells that began before the window of `now`."""
        oldest = (now - self.seconds) / self.cell_seconds
        for runner in list(self._cells):
            cells = self._cells[runner]
            while cells and cells[0][0] < oldest:
                cells.popleft()
            if not cells:
                del self._cells[runner]

    def sums(self) -> dict[Runner, LoadSums]:
        return {
            runner: load_sums((cell, code, sums) for cell, load in cells for code, sums in load.items())
            for runner, cells in self._cells.items()
        }
