"""95 % intervals of an acceptance rate. Steps of one request are alike, so the sample is of sequences, not of steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from store.counts import SequenceTotals
from store.schema import RATIO_UNIT


class Interval(NamedTuple):
    low: float
    high: float


def effective_n(totals: SequenceTotals) -> float:
    """(Σy_s)² / Σy_s², y_s the draft steps of sequence s (Kish): as many equally long sequences would tell as much."""
    steps = totals.draft_steps.astype(float)
    squares = float((steps * steps).sum())
    return float(steps.sum()) ** 2 / squares if squares else 0.0


def acceptance_interval(totals: SequenceTotals, confidence: float = 0.95) -> Interval | None:
    """The interval of α = Σx_s / Σy_s over n sequences, x_s = Σ a/d and y_s the draft steps of sequence s.

    Ratio estimator clustered by sequence (definitions.md, "Intervals"; Cochran, Sampling Techniques, §6):
    var ≈ n/(n−1) · Σ(x_s − α y_s)² / (Σy_s)², Student's t with n_eff − 1 degrees of freedom, cut to [0, 1].
    All or nothing accepted: exact binomial (Clopper-Pearson) on n_eff. None where nothing was drafted or where one
    sequence alone can't tell how sequences differ.
    """
    drafting = totals.draft_steps > 0
    n = int(drafting.sum())
    if not n:
        return None
    steps = totals.draft_steps[drafting]
    total_steps, total_ratio = int(steps.sum()), int(totals.ratio.sum())
    n_eff = effective_n(totals)
    tail = (1 - confidence) / 2
    if total_ratio == 0:
        return Interval(0.0, 1 - tail ** (1 / n_eff))
    if total_ratio == total_steps * RATIO_UNIT:
        return Interval(tail ** (1 / n_eff), 1.0)
    if n < 2 or n_eff <= 1:
        return None
    alpha = total_ratio / RATIO_UNIT / total_steps
    residuals = totals.ratio[drafting] / RATIO_UNIT - alpha * steps
    variance = n / (n - 1) * float((residuals * residuals).sum()) / total_steps**2
    half = float(stdtrit(n_eff - 1, 1 - tail)) * float(np.sqrt(variance))
    return Interval(max(0.0, alpha - half), min(1.0, alpha + half))
