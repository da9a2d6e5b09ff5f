"""The table: how far the steps of each measured load lie from the fit, and how well that is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.step_time.bands import BIN_RATIO
from engine.step_time.columns import Bools, Floats, Groups, Ints
from engine.step_time.counts import StepTimes
from engine.step_time.fit import Coefficients
from engine.step_time.medians import grouped_mean

ENOUGH_STEPS: Final = 30
"""Steps from which a cell of the table is believed."""

_BIN_SD: Final = (BIN_RATIO - 1) / sqrt(12)
"""No cell is known better than a bin is wide, however many steps there are: its loads differ."""


@dataclass(frozen=True)
class Cells:
    """Cells (K, batch band, context band) of steady steps, by `cell_code` ascending. Arrays of one length."""

    code: Ints
    steps: Floats
    factor: Floats
    """Mean of actual over fitted duration, without stalls."""
    error: Floats
    """Relative standard error of the factor, the steps taken for independent."""

    @cached_property
    def known(self) -> Bools:
        return np.asarray(self.steps >= ENOUGH_STEPS)

    @cached_property
    def vanilla(self) -> Bools:
        """The cells of K = 0."""
        return np.asarray(self.code >> 48 == 0)

    def measured(self, code: Ints) -> Bools:
        """Whether the table knows each of these cells."""
        place, found = self._find(code)
        return np.asarray(found & self.known[place]) if len(self.code) else found

    def factors(self, code: Ints) -> Floats:
        """What to multiply the fit by in each of these cells; 1 where the table doesn't know better."""
        return self._where_measured(self.factor, code, 1.0)

    def errors(self, code: Ints) -> Floats:
        """Relative standard error in each of these cells; 0 where the table knows nothing: see `measured`."""
        return self._where_measured(self.error, code, 0.0)

    def _where_measured(self, column: Floats, code: Ints, otherwise: float) -> Floats:
        if not len(self.code):
            return np.full(code.shape, otherwise)
        place, _ = self._find(code)
        return np.where(self.measured(code), column[place], otherwise)

    def _find(self, code: Ints) -> tuple[Ints, Bools]:
        if not len(self.code):
            return np.zeros(code.shape, dtype=np.int64), np.zeros(code.shape, dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.code, code), len(self.code) - 1)
        return place, np.asarray(self.code[place] == code)


def cell_code(k: npt.ArrayLike, batch_band: npt.ArrayLike, context_band: npt.ArrayLike) -> Ints:
    """One number for a cell."""
    parts = (np.asarray(part, dtype=np.int64) for part in (k, batch_band, context_band))
    draft_length, batch, context = parts
    return np.asarray(draft_length << 48 | batch << 20 | context, dtype=np.int64)


def measure_cells(times: StepTimes, coefficients: Coefficients) -> Cells:
    """The table of the steady steps of `usable` step times."""
    steady, fitted = _fitted(times.take(times.steady), coefficients)
    code, groups = coded(steady)
    factor, spread = grouped_mean(steady.mean_ms / fitted, steady.count, groups)
    steps = groups.sums(steady.count)
    return Cells(code, steps, factor, np.hypot(spread / factor / np.sqrt(steps), _BIN_SD))


def coded(steady: StepTimes) -> tuple[Ints, Groups]:
    """The cells that occur, ascending, and the cell of each row."""
    codes = cell_code(steady.k_draft, steady.batch_band, steady.context_band)
    code, of = np.unique(codes, return_inverse=True)
    return code, Groups(of, len(code))


def _fitted(steady: StepTimes, coefficients: Coefficients) -> tuple[StepTimes, Floats]:
    """Rows for which the fit says anything, and what it says of one step of each, in ms."""
    steps = steady.count
    fitted = coefficients.ms(steady.batch, steady.tokens / steps, steady.context / steps, passes=steady.k_draft)
    sensible = fitted > 0
    return steady.take(sensible), fitted[sensible]
