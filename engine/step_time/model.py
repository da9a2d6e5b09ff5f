"""The step-time model of one engine: the table first, the fit between its cells, and how far either can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.step_time.bands import batch_band, context_band
from engine.step_time.cells import Cells, cell_code, coded, measure_cells
from engine.step_time.columns import Bools, Floats, Groups, Ints
from engine.step_time.counts import StepTimes
from engine.step_time.fit import Coefficients, fit_coefficients
from engine.step_time.medians import ROBUST_SD, grouped_mean, median

MEASURED_SHARE: Final = 0.8
"""Share of a window's time whose cells must be measured before its speedup is shown."""
LARGEST_ERROR: Final = 0.10
"""Largest held-out error with which it is shown."""

_HALVES: Final = 2 / ROBUST_SD
"""Median difference between two halves of independent steps, in standard errors of the whole."""


@dataclass(frozen=True)
class StepModel:
    """Durations in ms. `batch`: decode rows of a step; `context`: tokens already computed, summed over them."""

    coefficients: Coefficients
    cells: Cells
    clean_steps: int
    """Vanilla decode steps that it was made from. Without any it knows nothing of vanilla."""
    drafting_steps: int
    """Steps after which something was drafted. Without any it knows nothing of drafting."""
    trimmed_steps: int
    """Of these, steps that only decoded and verified no drafts. Where every step drafts, it is only by them that the
    cost of a token to verify can be told from the rest."""
    error: float | None
    """Held-out error of `vanilla_ms`, relative, and of steps that drafted where there is no clean one at all, since the
    drafter can't be stopped; None where a half of the time has no such step."""

    def vanilla_ms(self, batch: npt.ArrayLike, context: npt.ArrayLike) -> Floats | None:
        """Vanilla-equivalent decode time: the same sequences, one token each, no drafts, no prefill.

        The fit, times the cell's correction where enough clean steps were seen in it. None without any clean step.
        """
        ones = np.ones(np.broadcast(batch, context).shape)
        bands = batch_band(batch), context_band(context, batch)
        return self.vanilla_totals(*bands, ones, np.asarray(batch, dtype=float), np.asarray(context, dtype=float))

    def vanilla_totals(
        self, batch_band: Ints, context_band: Ints, emitted: Floats, emitted_batch: Floats, emitted_context: Floats
    ) -> Floats | None:
        """Σ e·v over rows of one cell, from Σ e, Σ e·batch and Σ e·context: exact, since v is linear in the last two
        within a cell. Arrays of one shape. None without any clean step."""
        if not self.clean_steps:
            return None
        costs = self.coefficients
        fitted = (
            costs.constant * emitted + (costs.batch + costs.tokens) * emitted_batch + costs.context * emitted_context
        )
        return np.asarray(fitted * self.cells.factors(cell_code(0, batch_band, context_band)))

    def prefill_ms(self, prefill: npt.ArrayLike) -> Floats:
        """The part of a step's time that its prompt tokens took, by the fit: 0 at 0, and never falling."""
        return np.asarray(self.coefficients.prefill * np.asarray(prefill, dtype=np.float64))

    def step_ms(
        self,
        batch: npt.ArrayLike,
        tokens: npt.ArrayLike,
        context: npt.ArrayLike,
        prefill: npt.ArrayLike = 0,
        passes: npt.ArrayLike = 0,
    ) -> Floats | None:
        """Duration of a step for planning: the decode part by the table of its K, or by the fit, and the prefill part.

        None where no steady step was seen, and where `passes` > 0 though no draft was ever seen.

        Args:
            tokens: decode rows and draft tokens to verify.
            passes: K.
        """
        if not len(self.cells.code) or (np.any(np.asarray(passes) > 0) and not self.drafting_steps):
            return None
        code = cell_code(passes, batch_band(batch), context_band(context, batch))
        decode = self.coefficients.ms(batch, tokens, context, passes=passes)
        return np.asarray(decode * self.cells.factors(code) + self.prefill_ms(prefill))

    def measured(self, batch_band: npt.ArrayLike, context_band: npt.ArrayLike) -> Bools:
        """Whether enough clean steps were seen in each of these cells."""
        return self.cells.measured(cell_code(0, batch_band, context_band))

    def measured_time(self, batch_band: Ints, context_band: Ints, time_ms: Floats) -> float:
        """Time spent in cells whose vanilla-equivalent can be trusted, ms: none while the held-out error is unknown or
        above `LARGEST_ERROR`."""
        if self.error is None or self.error > LARGEST_ERROR:
            return 0.0
        return float(time_ms[self.measured(batch_band, context_band)].sum())

    def calibrated(self, batch_band: Ints, context_band: Ints, time_ms: Floats) -> bool:
        """Whether the cells that carry `MEASURED_SHARE` of a window's time can be trusted. No time, no trust."""
        total = float(time_ms.sum())
        return total > 0 and self.measured_time(batch_band, context_band, time_ms) >= MEASURED_SHARE * total

    def vanilla_error(self, batch_band: Ints, context_band: Ints, amounts: Floats) -> float:
        """Standard error of Σ amounts that calibration leaves, in the unit of `amounts`: vanilla-equivalent times, or
        shares of them, then it is relative.

        Measured cells are independent. All others hang on one fit, whose error they share.
        """
        code, of = np.unique(cell_code(0, batch_band, context_band), return_inverse=True)
        total = Groups(of, len(code)).sums(amounts)
        own = total * self.cells.errors(code) * self.inflation
        shared = float(total[~self.cells.measured(code)].sum()) * self.fit_error
        return sqrt(float((own * own).sum()) + shared * shared)

    @cached_property
    def inflation(self) -> float:
        """How much further the two halves of the time lie apart than independent steps would: steps of one stretch of
        time are alike. At least 1."""
        where = self.cells.vanilla & self.cells.known
        if self.error is None or not where.any():
            return 1.0
        return max(1.0, self.error / _HALVES / median(self.cells.error[where], self.cells.steps[where]))

    @cached_property
    def fit_error(self) -> float:
        """Relative standard deviation of a cell that was not measured: as measured ones lie about the fit, and no less
        than the held-out error."""
        held_out = ROBUST_SD * (self.error or 0.0)
        where = self.cells.vanilla & self.cells.known
        if not where.any():
            return held_out
        return max(held_out, ROBUST_SD * median(np.abs(self.cells.factor[where] - 1), self.cells.steps[where]))


def fit_step_model(times: StepTimes) -> StepModel:
    """The model of all these steps. Deterministic; rows of one key may be split or added up."""
    times = times.usable()
    coefficients = fit_coefficients(times)
    return StepModel(
        coefficients,
        measure_cells(times, coefficients),
        clean_steps=int(times.count[times.clean].sum()),
        drafting_steps=int(times.count[times.k_draft > 0].sum()),
        trimmed_steps=int(times.count[times.trimmed].sum()),
        error=_held_out_error(times),
    )


def _held_out_error(times: StepTimes) -> float | None:
    """How far off steps are that the model has not seen: each half by a model of the other, averaged. Clean ones, and
    where there is none at all whatever only decoded."""
    told = times.clean if times.clean.any() else (times.prefill_band == 0) & (times.batch > 0)
    errors = []
    for half in (0, 1):
        seen, unseen = times.take(times.half == half), times.take((times.half != half) & told)
        if not told[times.half == half].any() or not len(unseen):
            return None
        errors.append(_prediction_error(seen, unseen))
    return sum(errors) / len(errors)


def _prediction_error(seen: StepTimes, unseen: StepTimes) -> float:
    """The median over the steps of |predicted / actual − 1| of their cell, each cell's actual being its mean without
    stalls."""
    coefficients = fit_coefficients(seen)
    cells = measure_cells(seen, coefficients)
    code, groups = coded(unseen)
    steps = unseen.count
    predicted = coefficients.ms(unseen.batch, unseen.tokens / steps, unseen.context / steps, passes=unseen.k_draft)
    predicted = predicted * cells.factors(code)[groups.of]
    off = 1 / grouped_mean(unseen.mean_ms / predicted, steps, groups)[0] - 1
    return median(np.abs(off), groups.sums(steps))
