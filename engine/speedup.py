"""Speedup over vanilla: what the formula predicts of an acceptance, and what was realised in measured time.

Two of three names that are never mixed. The formula assumes that verifying K + 1 tokens costs what one costs: theory.
The realised speedup is at equal batch and experienced: a bucket pays for its neighbours' drafts. What a workload's own
K buys, its marginal gain, is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, isfinite, log, sqrt
from numbers import Integral, Real
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np

from engine.intervals import CONFIDENCE, Interval, ratio_interval
from engine.step_time.load import Account, LoadSums, account
from engine.step_time.model import MEASURED_SHARE, StepModel

SpeedupState = Literal["ok", "few", "calibrating", "absent"]

FEW_CELLS: Final = 3
"""Below as many stretches of time a realised speedup carries "few"."""

_MOST_REACH: Final = 50.0
"""Of a bound, as a logarithm: beyond it is no number but an accident of Student's t with next to no freedom."""

_NORMAL: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def formula_tokens(alpha: float, k: int) -> float:
    """Expected tokens of one verification: (1 − α^(K+1)) / (1 − α), and K + 1 at α = 1 (Leviathan et al.,
    arXiv 2211.17192, eq. 1), with α the conditional acceptance.

    Raises:
        ValueError: names the argument and its range.
    """
    if not isinstance(alpha, Real) or not 0 <= alpha <= 1:
        raise ValueError(f"alpha must lie in [0, 1], not {alpha!r}")
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 0:
        raise ValueError(f"K must be a whole number of 0 or more, not {k!r}")
    if k == 0 or alpha == 0:
        return 1.0
    if alpha == 1:
        return float(k + 1)
    return expm1((k + 1) * log(alpha)) / (alpha - 1)  # no digits lost where α is close to 1


def formula_speedup(alpha: float, k: int, c: float) -> float:
    """S(α, K, c) = (1 − α^(K+1)) / ((1 − α)(K c + 1)) (Leviathan et al., arXiv 2211.17192, theorem 3.8).

    Args:
        c: time of one draft pass over the time of one target pass.

    Raises:
        ValueError: names the argument and its range.
    """
    if not isinstance(c, Real) or not isfinite(c) or c < 0:
        raise ValueError(f"c must be a finite number of 0 or more, not {c!r}")
    return formula_tokens(alpha, k) / (k * c + 1)


class Speedup(NamedTuple):
    """Realised speedup: Σ gained / Σ taken, with its interval. Value, interval and gained are None while the state is
    `calibrating` or `absent`; the interval also where too little was seen for one."""

    value: float | None
    low: float | None
    high: float | None
    state: SpeedupState
    gained_ms: float | None
    taken_ms: float | None


def realised_speedup(sums: LoadSums, model: StepModel | None) -> Speedup:
    """Σ (e·v + p) / Σ t over decode rows of one engine (definitions.md, "Realised speedup")."""
    return pooled_speedup([account(sums, model)])


def pooled_speedup(accounts: Sequence[Account]) -> Speedup:
    """The same over several engines, each held against its own model: Σ gained / Σ taken.

    An engine whose model knows nothing of vanilla is left out of both sums; it counts as unmeasured time.
    """
    total = sum(one.total_ms for one in accounts)
    if not sum(one.rows for one in accounts) or not total:
        return Speedup(None, None, None, "absent", None, None)
    gained = np.concatenate([one.gained_ms for one in accounts])
    taken = np.concatenate([one.taken_ms for one in accounts])
    if sum(one.measured_ms for one in accounts) < MEASURED_SHARE * total:
        return Speedup(None, None, None, "calibrating", None, None)
    over, under = float(gained.sum()), float(taken.sum())
    interval = _interval(gained, taken, sqrt(sum(one.error_ms**2 for one in accounts)))
    few = interval is None or np.count_nonzero(taken) < FEW_CELLS
    low, high = interval or (None, None)
    return Speedup(over / under, low, high, "few" if few else "ok", over, under)


def _interval(gained: np.ndarray, taken: np.ndarray, error: float) -> Interval | None:
    """Clustered by stretches of time, with the calibration error of Σ gained: the two add up as relative variances
    (delta method on the logarithm)."""
    sampling = ratio_interval(gained, taken, share=False)
    if sampling is None:
        return None
    value = float(gained.sum()) / float(taken.sum())
    half = np.hypot(sampling.high / value - 1, _NORMAL * error / float(gained.sum()))
    if not half < _MOST_REACH:
        return None  # one stretch outweighs all others together: they tell nothing of how stretches differ
    return Interval(float(value * np.exp(-half)), float(value * np.exp(half)))
