"""Counts an engine's steps while it is calibrated: those that the step-time model will count, and nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from console.station.calibration_plan import Arm, half_of
from engine.frames import PackedStep


class Cell(NamedTuple):
    batch: int
    arm: Arm


class StepCounts:
    """Steady steps (decoding only, K the same as the step before) of the batch size and arm that is measured now."""

    def __init__(self) -> None:
        self._now: Cell | None = None
        self._steps: Counter[tuple[Cell, int]] = Counter()
        self._ms: defaultdict[Cell, float] = defaultdict(float)
        self._longest: dict[Cell, int] = {}

    def measure(self, cell: Cell | None) -> None:
        """Count steps for this from now on; None for nothing."""
        self._now = cell

    def take(self, step: PackedStep) -> None:
        cell = self._now
        if cell is None or step.prefill_tokens or step.k_verify != step.k_draft:
            return
        # Steps of other batches are those in which sequences of the block before are still there.
        if _band(step.count) != _band(cell.batch) or (step.k_draft > 0) != (cell.arm == "drafting"):
            return
        self._steps[cell, half_of(step.ts)] += 1
        self._ms[cell] += step.duration_ms
        self._longest[cell] = max(step.k_draft, self._longest.get(cell, 0))

    def halves(self, cell: Cell) -> tuple[int, int]:
        """Steps in each half of the time."""
        return self._steps[cell, 0], self._steps[cell, 1]

    def steps(self, cell: Cell) -> int:
        return sum(self.halves(cell))

    def mean_ms(self, cell: Cell) -> float | None:
        steps = self.steps(cell)
        return self._ms[cell] / steps if steps else None

    def k(self, cell: Cell) -> int | None:
        """K as executed, the longest; None where nothing was counted."""
        return self._longest.get(cell)


def _band(rows: int) -> int:
    """As `engine.step_time.bands.batch_band`, of one number."""
    return 1 << (rows - 1).bit_length() if rows > 0 else 0
