"""The fit: what each part of a step's load costs, robust against steps that took far too long.

Non-negative least squares of the duration on load (Lawson & Hanson, Solving Least Squares Problems, 1974), reweighted
after Huber (Robust Statistics, 1981, §7) on the error relative to the fit.

Features are means over steps of equal load, never over steps of equal duration: a mean given the outcome would turn
noise of the duration into cost of the load.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.step_time.columns import Floats, grouped
from engine.step_time.counts import StepTimes
from engine.step_time.medians import ROBUST_SD, grouped_median, median

_ROUNDS: Final = 12
_SETTLED: Final = 1e-4
"""Relative change of the fit below which another round is not worth its time."""
_CUT: Final = 2.0
"""Standard deviations beyond which a step counts less."""
_LEAST_SPREAD: Final = 0.01
_FULL_WEIGHT: Final = 100.0
"""A load seen far more often than this says no more about the others: the fit is there for the seldom seen."""
_RIDGE: Final = 1e-7
"""Shares a cost evenly among features that can't be told apart (batch and tokens, where nothing was ever drafted)."""


class Coefficients(NamedTuple):
    """Milliseconds for each step, decode row, verified token, token of context, prefill token and draft pass."""

    constant: float
    batch: float
    tokens: float
    context: float
    prefill: float
    passes: float
    """A draft pass is one of K. The pass that a drafter runs at K = 0 too, to keep its cache in step, is part of
    `constant` and `batch`."""

    def ms(
        self,
        batch: npt.ArrayLike,
        tokens: npt.ArrayLike,
        context: npt.ArrayLike,
        prefill: npt.ArrayLike = 0,
        passes: npt.ArrayLike = 0,
    ) -> Floats:
        """Duration of a step by the fit alone."""
        load = (1, batch, tokens, context, prefill, passes)
        parts = (cost * np.asarray(amount, dtype=np.float64) for cost, amount in zip(self, load, strict=True))
        return np.asarray(sum(parts), dtype=np.float64)


NOTHING: Final = Coefficients(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def fit_coefficients(times: StepTimes) -> Coefficients:
    """Fit `usable` step times; all 0 where there are none."""
    if not len(times):
        return NOTHING
    groups = grouped((times.k_verify, times.k_draft, times.batch, times.context_band, times.prefill_band))
    steps, ms = times.count, times.mean_ms
    total = groups.sums(steps)
    features = _features(times)
    load = np.column_stack([groups.sums(feature) / total for feature in features])
    middle = grouped_median(ms, steps, groups)
    # Prompts of one band differ in length: what is far from the middle there need not be an outlier.
    spread = ROBUST_SD * grouped_median(np.abs(ms / middle[groups.of] - 1), steps, groups)
    weight = total * _FULL_WEIGHT / (total + _FULL_WEIGHT)
    share = (weight / total)[groups.of] * steps

    costs = _non_negative(load, middle, weight / middle**2)
    for _ in range(_ROUNDS):
        fitted = load @ costs
        unit = np.maximum(fitted, middle / 4)
        error = np.abs(ms - fitted[groups.of]) / unit[groups.of]
        noise = max(ROBUST_SD * median(error, share), _LEAST_SPREAD)
        kept = steps * np.minimum(1.0, _CUT * np.maximum(noise, spread)[groups.of] / np.maximum(error, 1e-12))
        held = groups.sums(kept)
        costs = _non_negative(load, groups.sums(kept * ms) / held, weight * held / total / unit**2)
        if np.all(np.abs(load @ costs - fitted) <= _SETTLED * unit):
            break
    return Coefficients(*costs.tolist())


def _features(times: StepTimes) -> tuple[Floats, ...]:
    """Sums over each row's steps, in the order of `Coefficients`."""
    return (
        times.count, times.count * times.batch, times.tokens, times.context, times.prefill, times.count * times.k_draft,
    )  # fmt: skip


def _non_negative(load: Floats, ms: Floats, weight: Floats) -> Floats:
    """Costs ≥ 0 that minimise Σ weight · (ms − load · costs)²."""
    from scipy.optimize import nnls  # half a second that a command line need not wait for

    root = np.sqrt(weight)
    scaled = load * root[:, None]
    norms = np.sqrt((scaled * scaled).sum(axis=0))
    norms[norms == 0] = 1.0
    scaled /= norms
    # Six normal equations instead of a row for each load: as good, since every column has length 1.
    lower = np.linalg.cholesky(scaled.T @ scaled + _RIDGE * np.eye(load.shape[1]))
    costs, _ = nnls(lower.T, np.linalg.solve(lower, scaled.T @ (root * ms)), maxiter=1000)
    return np.asarray(costs / norms, dtype=np.float64)
