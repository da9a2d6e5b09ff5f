"""The objective R(K⃗): expected tokens per second of the present mix, and how far its ratios can be trusted.

R(K⃗) = Σ_l s_l Σ_w n_lw E_w(k_lw) / Σ_l s_l t(n_l, n_l + Σ_w n_lw D_w(k_lw), max_w k_lw), summed over the batches l that
occurred (s_l steps each), with k_lw = K_w or what schedule and cap leave of it at that batch, and D_w the draft tokens
to verify a row, K_w for a drafter that always fills its K (design §9).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from engine.deciding.estimates import Loads
from engine.step_time.bands import batch_band, context_band
from engine.step_time.cells import cell_code
from engine.step_time.columns import Bools, Floats, Ints
from engine.step_time.model import StepModel

ENOUGH_TRIMMED: Final = 8
"""Steps without drafts to verify, of an engine that drafts at every step, from which the cost of these is told."""


@dataclass(frozen=True)
class Prospects:
    """What each workload makes of a K. Arrays (W, max_k + 1): column K is for K draft tokens."""

    expected: Floats
    """E_w(K): tokens a row."""
    verified: Floats
    """D_w(K): draft tokens to verify a row."""

    def with_expected(self, workload: int, k: int, tokens: float) -> Prospects:
        """The same with another E_w(k), for a bound."""
        expected = self.expected.copy()
        expected[workload, k] = tokens
        return Prospects(expected, self.verified)


@dataclass(frozen=True)
class Objective:
    """R over the loads of the moment. `lengths`: (W,) int64, the K of each workload."""

    loads: Loads
    most: Ints
    """(L,): what schedule, cap and start-up maximum leave at each batch."""
    base_ms: Floats
    """(L, max_k + 1): duration of a step after which K tokens are drafted, without the tokens to verify, …"""
    token_ms: Floats
    """… and of each token verified in it."""
    cell_error: Floats
    """(L, max_k + 1): relative standard error of such a duration, as far as it is the cell's own."""
    fit_error: float
    """Relative standard error of what the fit says costs more than something else."""
    fixed: bool
    """Drafting takes the maximum of passes whatever K is."""

    @classmethod
    def of(cls, loads: Loads, model: StepModel | None, most: Ints, max_k: int, fixed: bool) -> Objective | None:
        """None while the model can't say what a step costs with drafts and without. With a drafter that never stops
        there is none without, and they differ by the tokens to verify alone."""
        if model is None or not len(loads.steps):
            return None
        if model.trimmed_steps < ENOUGH_TRIMMED if fixed else not model.clean_steps:
            return None
        batch, context = loads.batch[:, None], loads.context[:, None]
        passes = np.full((1, max_k + 1), max_k) if fixed else np.arange(max_k + 1)[None, :]
        none, one = (model.step_ms(batch, tokens, context, passes=passes) for tokens in (0.0, 1.0))
        if none is None or one is None:
            return None
        code = cell_code(passes, batch_band(batch), context_band(context, batch))
        error = np.where(model.cells.measured(code), model.cells.errors(code) * model.inflation, model.fit_error)
        return cls(loads, most, none, one - none, error, model.fit_error, fixed)

    def among(self, where: Bools) -> Objective:
        """Of these loads only."""
        return replace(
            self, loads=self.loads.among(where), most=self.most[where], base_ms=self.base_ms[where],
            token_ms=self.token_ms[where], cell_error=self.cell_error[where],
        )  # fmt: skip

    def rate(self, lengths: Ints, prospects: Prospects) -> float:
        """Expected tokens per second of busy time."""
        return 1000 * self.tokens(lengths, prospects) / self.ms(lengths, prospects)

    def tokens(self, lengths: Ints, prospects: Prospects) -> float:
        """Σ_l s_l · tokens of a step."""
        k = np.minimum(lengths, self.most[:, None])
        expected = prospects.expected[self._workloads, k]
        return float(self.loads.steps @ ((self.loads.rows * expected).sum(axis=1) + self.loads.others))

    def ms(self, lengths: Ints, prospects: Prospects) -> float:
        """Σ_l s_l · duration of a step."""
        return float(self._times(lengths, prospects).sum())

    def time_error(self, one: Ints, other: Ints, prospects: Prospects) -> float:
        """Standard error of log(ms(one) / ms(other)).

        Two loads with the same number of draft passes share their cell of the table and differ by tokens to verify,
        whose cost hangs on the fit; with another number each cell adds its own error.
        """
        times = self._times(one, prospects)
        share = times / times.sum()
        slope = self.fit_error * abs(float(np.log(times.sum() / self.ms(other, prospects))))
        places, here, there = np.arange(len(share)), self._passes(one), self._passes(other)
        own = np.hypot(self.cell_error[places, here], self.cell_error[places, there])
        return float(np.hypot(slope, share @ np.where(here != there, own, 0.0)))

    @cached_property
    def _workloads(self) -> Ints:
        return np.arange(self.loads.rows.shape[1])

    @cached_property
    def _present(self) -> Bools:
        return self.loads.rows > 0

    def _passes(self, lengths: Ints) -> Ints:
        if self.fixed:
            return np.full(len(self.most), self.base_ms.shape[1] - 1)
        longest = np.where(self._present, lengths, 0).max(axis=1, initial=0)
        return np.asarray(np.minimum(longest, self.most))

    def _times(self, lengths: Ints, prospects: Prospects) -> Floats:
        loads, passes, places = self.loads, self._passes(lengths), np.arange(len(self.most))
        drafted = prospects.verified[self._workloads, np.minimum(lengths, self.most[:, None])]
        tokens = loads.batch + (loads.rows * drafted).sum(axis=1)
        return np.asarray(loads.steps * (self.base_ms[places, passes] + self.token_ms[places, passes] * tokens))
