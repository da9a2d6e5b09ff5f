"""How long steps take, shared among their rows, by the step-time model of the engine that made them: table first, fit
second.

A row's share of a step of n decode rows is linear in what the row adds to it, so that the shares of the rows of a step
add up to the model's time whatever the others draft. Steps keep the batch that was recorded where their tokens stood:
the answer for clients that wait for their answers (saturated), not for equal arrivals.

Where a policy would spend its time at loads that the record can't identify (`factors`) there are no tokens per second.
"""

from __future__ import annotations

from collections import defaultdict
from math import exp
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from engine.intervals import CONFIDENCE
from engine.step_time.bands import batch_band, context_band
from engine.step_time.cells import ENOUGH_STEPS, cell_code
from engine.step_time.medians import ROBUST_SD
from engine.step_time.model import LARGEST_ERROR, MEASURED_SHARE, StepModel
from store.counts import Bools, Ints
from store.whatif.factors import Factors, load_of
from store.whatif.reading import Floats
from store.whatif.walk import FILLED, RIGHT, WALKS, WRONG

_NORMAL: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

Booked = defaultdict[int, float]
"""Milliseconds by cell of the table."""


class Outlook(NamedTuple):
    """Decode time under a policy over the recorded one, with what the bounds of the walk and the error of the step
    times leave: `short` is the shortest it may be."""

    ratio: float
    short: float
    long: float


class Costs:
    """Of one engine and model version.

    Args:
        fixed_k: the batch K of an engine that can't move it, else None.
    """

    def __init__(self, model: StepModel, fixed_k: int | None) -> None:
        self._model = model
        self._factors = Factors(model.cells)
        self._fixed_k = fixed_k
        self._recorded: Booked = defaultdict(float)
        self._predicted: list[Booked] = [defaultdict(float) for _ in range(WALKS)]

    def record(self, batch: Ints, k: Ints, drafts: Ints, context: Ints) -> None:
        """Take recorded rows: the decode rows of their step, its K, the drafts that were verified, tokens computed."""
        ms, code = self._row_ms(batch, k, drafts, context)
        _book(self._recorded, code, ms)

    def predict(self, batch: Ints, k: Ints, drafts: Ints, context: Ints, starts: Floats) -> None:
        """Take rows of the policy, `starts` (3, rows) of each in the three walks."""
        ms, code = self._row_ms(batch, k, drafts, context)
        for booked, weight in zip(self._predicted, starts, strict=True):
            _book(booked, code, ms * weight)

    def outlook(self) -> Outlook | str:
        """What it comes to, or why that can't be said."""
        recorded, predicted = sum(self._recorded.values()), [sum(booked.values()) for booked in self._predicted]
        if not recorded or not predicted[FILLED]:
            return "the record has no steady steps to take step times from"
        doubt = self._doubt()
        if doubt is not None:
            return doubt
        off = exp(_NORMAL * self._log_error(recorded, predicted[FILLED]))
        return Outlook(
            predicted[FILLED] / recorded,
            min(predicted[RIGHT], predicted[FILLED]) / recorded / off,
            max(predicted[WRONG], predicted[FILLED]) / recorded * off,
        )

    def _row_ms(self, batch: Ints, k: Ints, drafts: Ints, context: Ints) -> tuple[Floats, Ints]:
        passes = k if self._fixed_k is None else np.full(len(k), self._fixed_k, dtype=np.int64)
        costs, rows = self._model.coefficients, np.maximum(batch, 1)
        of_step = (costs.constant + costs.passes * passes) / rows
        of_row = costs.batch + costs.tokens * (1 + drafts) + costs.context * context
        code = cell_code(passes, batch_band(rows), context_band(context, 1))
        codes, which = np.unique(code, return_inverse=True)
        factors = np.array([self._factors.of(one).value for one in codes.tolist()])
        return np.asarray((of_step + of_row) * factors[which]), code

    def _doubt(self) -> str | None:
        """Why the step times of the policy are not known well enough; None where they are."""
        error = self._model.error
        if error is None:
            return "the record is too short: its step times can't be held against each other"
        if error > LARGEST_ERROR:
            return f"step times are off by {error:.0%} where they are held against each other"
        booked = self._predicted[FILLED]
        unknown = {code: ms for code, ms in booked.items() if self._factors.of(code).basis == "unknown"}
        if sum(unknown.values()) > (1 - MEASURED_SHARE) * sum(booked.values()):
            worst = load_of(max(unknown, key=unknown.__getitem__))
            return (
                f"how long steps at K {worst.k} with about {worst.batch} decoding take is not known: the record has "
                f"neither {ENOUGH_STEPS} steady ones nor enough at both a smaller and a larger K"
            )
        if self._fixed_k and not self._model.trimmed_steps:
            return (
                "its drafter always drafts its maximum, and no step without drafts to verify is in the record: what "
                "fewer would save is not known"
            )
        return None

    def _log_error(self, recorded: float, predicted: float) -> float:
        """Standard error of the logarithm of predicted over recorded time.

        By how much the two differ in the loads they spend their time at: of each load its own error, of all that the
        table doesn't know the fit's together, and the held-out error of the model as a whole.
        """
        shift: Booked = defaultdict(float)
        for booked, whole, sign in ((self._predicted[FILLED], predicted, 1), (self._recorded, recorded, -1)):
            for code, ms in booked.items():
                shift[code] += sign * ms / whole
        codes = np.array(list(shift), dtype=np.int64)
        moved = np.array([shift[code] for code in codes.tolist()])
        found = [self._factors.of(code) for code in codes.tolist()]
        known = np.array([one.basis == "measured" for one in found])
        cells = np.array([one.cell or 0 for one in found], dtype=np.int64)
        own = np.where(known, moved * self._model.cells.errors(cells), 0.0) * self._model.inflation
        shared = abs(float(moved[~known].sum())) * self._model.fit_error
        whole_model = float(np.abs(moved).sum()) / 2 * ROBUST_SD * (self._model.error or 0.0)
        return float(np.sqrt((own * own).sum() + shared * shared + whole_model * whole_model))


def drafts_verified(k: Ints, offered: Ints, at_row_start: Bools) -> Ints:
    """Drafts that a step is taken to verify: K, but where a recorded step started no more than was on offer there."""
    return np.where(at_row_start, np.minimum(k, offered), k)


def _book(booked: Booked, code: Ints, ms: Floats) -> None:
    codes, which = np.unique(code, return_inverse=True)
    for one, sum_ms in zip(codes.tolist(), np.bincount(which, weights=ms).tolist(), strict=True):
        booked[one] += sum_ms
