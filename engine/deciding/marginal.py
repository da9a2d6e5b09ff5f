"""Marginal gain of one workload: R with its drafts / R without, the others as they are, over the steps with it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from engine.deciding.estimates import Evidence
from engine.deciding.hazards import expected_tokens
from engine.deciding.objective import Objective, Prospects
from engine.deciding.view import View
from engine.intervals import Interval
from engine.step_time.columns import Floats


class Judged(NamedTuple):
    """The marginal gain of one workload at K = k."""

    workload: int
    k: int
    gain: float
    bounds: Interval | None
    """None where too little was seen."""
    hazards: tuple[float, ...]
    sequences: int


@dataclass(frozen=True)
class Marginal:
    """`place`: the workload, which has had rows lately."""

    view: View
    place: int
    objective: Objective

    @classmethod
    def of(cls, view: View, place: int) -> Marginal:
        assert view.objective is not None  # whoever asks has looked
        return cls(view, place, view.objective.among(view.estimates.loads.rows[:, place] > 0))

    def gain(self, k: int, prospects: Prospects) -> float:
        rate = self.objective.rate
        return rate(self.view.with_length(self.place, k), prospects) / rate(
            self.view.with_length(self.place, 0), prospects
        )

    def best(self, hazards: Floats, most: int | None = None) -> tuple[int, float]:
        """The K ≥ 1, at most `most`, with the highest marginal gain if these were the hazards, and that gain."""
        prospects, reach = self._hoping(hazards), self.view.reach(self.place)
        gains = [self.gain(k, prospects) for k in range(1, (reach if most is None else min(reach, most)) + 1)]
        best = int(np.argmax(gains))
        return best + 1, gains[best]

    def judged(self, k: int, hazards: Floats, tokens: Interval | None, sequences: int) -> Judged:
        """With bounds: those of the acceptance, given as an interval of E[tokens | k], and of the step times add up as
        relative variances (delta method on the logarithm)."""
        view, prospects = self.view, self._hoping(hazards)
        gain = self.gain(k, prospects)
        known = tuple(hazards.tolist())
        if tokens is None or view.estimates.model is None or view.estimates.model.error is None:
            return Judged(self.place, k, gain, None, known, sequences)
        ends = [self.gain(k, prospects.with_expected(self.place, k, end)) for end in tokens]
        reach = NormalDist().inv_cdf((1 + view.settings.confidence) / 2)
        error = self.objective.time_error(view.with_length(self.place, k), view.with_length(self.place, 0), prospects)
        low, high = (float(np.hypot(log(end / gain), reach * error)) for end in ends)
        return Judged(self.place, k, gain, Interval(gain * exp(-low), gain * exp(high)), known, sequences)

    def _hoping(self, hazards: Floats) -> Prospects:
        """Prospects with these hazards of the workload; those missing are as the last."""
        depth = self.view.estimates.max_k
        padded = np.concatenate((hazards, np.full(max(0, depth - len(hazards)), hazards[-1])))[:depth]
        expected = self.view.prospects.expected.copy()
        expected[self.place] = expected_tokens(padded)
        return Prospects(expected, self.view.prospects.verified)


def filled(evidence: Evidence, enough: int) -> Floats:
    """Hazards; a position that fewer than `enough` rows came to is taken to be as the one before it. The first counts
    with any rows, of which there must be some."""
    found: list[float] = []
    for rows, hazard in zip(evidence.rows.tolist(), evidence.hazards.tolist(), strict=True):
        found.append(hazard if rows >= enough or not found else found[-1])
    return np.array(found)
