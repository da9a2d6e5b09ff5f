"""Arms that take turns in rounds, and one of them against the best of the others. Arithmetic only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Final, NamedTuple

from engine.intervals import geometric_mean

POINT: Final = 0.93
REACH: Final = 0.97
"""The claim holds when the point is at least the first and the interval reaches the second."""


class Mean(NamedTuple):
    """Geometric mean with Student's t interval at 95 % over blocks; no bounds from one block alone."""

    value: float
    low: float | None
    high: float | None


class AgainstBest(NamedTuple):
    """An arm over the one that was the best other arm in the odd rounds, in the even rounds."""

    best: str
    ratio: Mean
    pairs: list[float]

    @property
    def met(self) -> bool:
        return self.ratio.value >= POINT and self.ratio.high is not None and self.ratio.high >= REACH


def order(arms: Sequence[str], number: int) -> list[str]:
    """The arms of round `number` (from 0): two rounds are a palindrome, and each such pair begins at another arm, so
    that a drift of the machine falls on all arms alike."""
    start = number // 2 * (len(arms) // 2 + 1) % len(arms)
    turned = [*arms[start:], *arms[:start]]
    return turned if number % 2 == 0 else turned[::-1]


def mean(values: Sequence[float]) -> Mean:
    value, interval = geometric_mean(values)
    return Mean(value, *(interval or (None, None)))


def against_best(rates: Mapping[str, Sequence[float]], arm: str) -> AgainstBest:
    """`rates`: of each arm, by round. The first round is odd."""
    others = {name: values for name, values in rates.items() if name != arm}
    best = max(others, key=lambda name: _level(others[name][0::2]))
    pairs = ratios(rates[arm][1::2], rates[best][1::2])
    return AgainstBest(best, mean(pairs), pairs)


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(over, under, strict=True)]


def _level(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))
