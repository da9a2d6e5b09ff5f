"""From hazards of positions to expected tokens, and how well they are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.deciding.estimates import Evidence
from engine.intervals import Interval, ratio_interval
from engine.step_time.columns import Floats


def expected_tokens(hazards: npt.ArrayLike) -> Floats:
    """E[tokens | K] = 1 + Σ_{j≤K} Π_{i≤j} g_i for K = 0 … len(hazards) (definitions.md, "Formula")."""
    reach = np.cumprod(np.asarray(hazards, dtype=np.float64))
    return np.concatenate(([1.0], 1.0 + np.cumsum(reach)))


def tokens_interval(evidence: Evidence, k: int, confidence: float) -> Interval | None:
    """Interval of E[tokens | k], k ≥ 1, clustered as `evidence` is; None where it can't tell how clusters differ.

    Delta method: E is linear in the hazards near their estimates, ∂E/∂g_i = Σ_{j≥i} Π_{l≤j} g_l / g_i, and each g_i is
    a ratio of sums over clusters; so is, to first order, E itself (Cochran, Sampling Techniques, 3rd ed., §6). k = 1 is
    the ratio g_1, exact binomial at 0 and 1.
    """
    first = ratio_interval(evidence.passed[:, 0], evidence.at_risk[:, 0], confidence=confidence)
    if first is None or k == 1:
        return None if first is None else Interval(1 + first.low, 1 + first.high)
    at_risk, passed, rows = evidence.at_risk[:, :k], evidence.passed[:, :k], evidence.rows[:k]
    g = evidence.hazards[:k]
    if not (rows > 0).all() or not (g > 0).all():
        return Interval(1 + first.low, 1 + first.high * k)
    reach = np.cumprod(g)
    slopes = np.cumsum(reach[::-1])[::-1] / g
    influence = ((passed - at_risk * g) * (slopes / rows)).sum(axis=1)
    expected = float(1 + reach.sum())
    found = ratio_interval(
        expected * at_risk[:, 0] + influence * rows[0], at_risk[:, 0], confidence=confidence, share=False
    )
    if found is None:
        return None
    # One token is always committed, and a depth can't give less than the first position alone.
    return Interval(max(found.low, 1 + first.low), min(found.high, 1.0 + k))


def regrouped(evidence: Evidence, cluster: npt.ArrayLike) -> Evidence:
    """The same rows in other clusters: entry i goes to cluster number `cluster[i]`."""
    _, of = np.unique(np.asarray(cluster, dtype=np.int64), return_inverse=True)
    shape = (int(of.max()) + 1 if len(of) else 0, evidence.at_risk.shape[1])
    at_risk, passed = np.zeros(shape), np.zeros(shape)
    np.add.at(at_risk, of, evidence.at_risk)
    np.add.at(passed, of, evidence.passed)
    return Evidence(at_risk, passed, evidence.asked, evidence.drafted)
