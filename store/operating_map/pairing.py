"""Holds arms against each other at the same number of running sequences, and over repeats. Arithmetic only."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.intervals import reach

Rates = Mapping[int, tuple[float, float]]
"""By how many sequences ran (or a band of that): tokens and seconds."""


def rate_ratio(over: Rates, under: Rates) -> float | None:
    """Tokens/s of one arm over those of another, at equal running sequences: Σ a·t'/(t+t') / Σ a'·t/(t+t') over strata
    that both have (Mantel-Haenszel's rate ratio; Greenland and Robins, Biometrics 41, 1985).

    Arms that meet the same requests stand at different loads, as the slower one piles them up: pooled rates would
    compare loads. None where they have no stratum in common, or one made no tokens there.
    """
    top = bottom = 0.0
    for stratum in over.keys() & under.keys():
        (tokens, seconds), (others, other_seconds) = over[stratum], under[stratum]
        if seconds > 0 and other_seconds > 0:
            top += tokens * other_seconds / (seconds + other_seconds)
            bottom += others * seconds / (seconds + other_seconds)
    return top / bottom if top > 0 and bottom > 0 else None


class Ratio(NamedTuple):
    """One arm over another. Bounds at 95 %; None where repeats are too few to tell."""

    value: float
    low: float | None
    high: float | None


class Arms:
    """Logarithms of rates by arm and repeat, up to a constant of each repeat, taken apart into an effect of the arm and
    one of the repeat (randomised blocks).

    The machine is slower in one repeat than in another, for all arms alike: that is the repeat's. What is left over is
    pooled over all arms, so that two repeats of five arms tell of the noise with 4 degrees of freedom, where each pair
    by itself had 1. With two arms it is the paired t.
    """

    def __init__(self, logs: Mapping[tuple[str, int], float]) -> None:
        self.arms = list(dict.fromkeys(arm for arm, _ in logs))
        repeats = list(dict.fromkeys(repeat for _, repeat in logs))
        design = np.zeros((len(logs), len(self.arms) + len(repeats)))
        for row, (arm, repeat) in enumerate(logs):
            design[row, self.arms.index(arm)] = design[row, len(self.arms) + repeats.index(repeat)] = 1
        values = np.array(list(logs.values()))
        self._inverse = np.linalg.pinv(design.T @ design)
        self._effects = self._inverse @ design.T @ values
        self._freedom = len(logs) - int(np.linalg.matrix_rank(design)) if len(logs) else 0
        left = values - design @ self._effects
        self._variance = float(left @ left) / self._freedom if self._freedom > 0 else None

    def ratio(self, over: str, under: str) -> Ratio:
        """Rate of one arm over another's."""
        contrast: npt.NDArray[np.float64] = np.zeros(len(self._effects))
        contrast[self.arms.index(over)] += 1
        contrast[self.arms.index(under)] -= 1
        value = float(contrast @ self._effects)
        if over == under or self._variance is None:
            return Ratio(exp(value), None, None)
        half = reach(self._freedom) * sqrt(self._variance * float(contrast @ self._inverse @ contrast))
        return Ratio(exp(value), exp(value - half), exp(value + half))


def mix_ratio(ratios: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """One arm over another for a whole mix: time that the other needs for the mix's tokens over the time of this one.
    `weights`: share of the time that each workload takes under the other."""
    whole = sum(weights[name] for name in ratios)
    return whole / sum(weights[name] / ratio for name, ratio in ratios.items())


def logs_of(ratios: Mapping[tuple[str, int], float]) -> dict[tuple[str, int], float]:
    return {key: log(ratio) for key, ratio in ratios.items()}
