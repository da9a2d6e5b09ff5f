"""Whether a change made serving slower: tokens per busy second after it over before it, at like load; an interval.

Blocks of one load are held against blocks of the same: a change of the load is never taken for one of the policy's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import exp, log, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from console.station.step_blocks import Block, Load
from engine.intervals import CONFIDENCE, effective_n

FEWEST_BLOCKS: Final = 8
"""On either side."""

_FURTHEST_PART: Final = 3
"""Blocks that lie further apart than this part of what is held are too few to tell whether they are alike."""


ByLoad = dict[Load, list[Block]]
Floats = npt.NDArray[np.float64]


class Comparison(NamedTuple):
    """Tokens per busy second, before at the loads of after. `low` and `high`: bounds of `ratio` = after / before."""

    before: float
    after: float
    ratio: float
    low: float
    high: float
    confidence: float
    batch: float
    """Mean running sequences of the steps after the change."""
    blocks_before: int
    blocks_after: int


def compare(before: Iterable[Block], after: Iterable[Block], confidence: float = CONFIDENCE) -> Comparison | None:
    """Hold blocks after a change against those before it, at loads that both have seen; None where that is too few.

    Direct standardisation: the tokens after, over those that the rates before would have made in the same busy time at
    each load. Machines also have good and bad seconds: how alike neighbouring blocks are is estimated from those before
    (autocorrelation, initial positive sequence: Geyer, Practical Markov Chain Monte Carlo, Stat. Sci. 7, 1992, §3.3),
    and a short stretch after the change counts as the few independent ones that it is worth. The variances of both
    sides are joined on the logarithm (delta method), with Student's t on what the blocks before are worth.
    """
    old, new = _by_load(before), _by_load(after)
    shared = [load for load in new if len(old.get(load, ())) > 1]
    past = sorted((block for load in shared for block in old[load]), key=_time)
    since = sorted((block for load in shared for block in new[load]), key=_time)
    if min(len(past), len(since)) < FEWEST_BLOCKS:
        return None
    rates = {load: _tokens(old[load]) / _ms(old[load]) for load in shared}
    made, expected = _tokens(since), sum(rates[block.load] * block.ms for block in since)
    if not made or not expected:
        return None
    ratio = made / expected
    deviations = _deviations(past, rates, 1.0)
    alike = _autocorrelation(deviations)
    independent = _independent(_worth(past, old, new), alike)
    spread = max(float(np.mean(deviations**2)), float(np.mean(_deviations(since, rates, ratio) ** 2)))
    variance = spread * (1 / independent + 1 / _independent(len(since), alike))
    reach = _quantile(max(1.0, independent - 1), confidence) * sqrt(variance)
    busy = _ms(since) / 1000
    return Comparison(
        before=expected / busy,
        after=made / busy,
        ratio=ratio,
        low=exp(log(ratio) - reach),
        high=exp(log(ratio) + reach),
        confidence=confidence,
        batch=sum(block.running * block.ms for block in since) / _ms(since),
        blocks_before=len(past),
        blocks_after=len(since),
    )


def _deviations(blocks: list[Block], rates: dict[Load, float], ratio: float) -> Floats:
    """Of each block's tokens, relative to what `ratio` times the rate of its load gives."""
    return np.array([block.tokens / (ratio * rates[block.load] * block.ms) - 1 for block in blocks])


def _worth(past: list[Block], old: ByLoad, new: ByLoad) -> float:
    """How many equally weighty blocks those before are worth, when loads have the weight that they have since."""
    weights = np.array([block.ms * _ms(new[block.load]) / _ms(old[block.load]) for block in past])
    return effective_n(weights)


def _autocorrelation(deviations: Floats) -> Floats:
    """Of neighbours at distance 1, 2, …, as long as it can be told from nothing."""
    centred = deviations - deviations.mean()
    power = float(centred @ centred)
    found: list[float] = []
    for lag in range(1, len(centred) // _FURTHEST_PART + 1):
        alike = float(centred[:-lag] @ centred[lag:]) / power if power else 0.0
        if alike <= 0:
            break
        found.append(alike)
    return np.array(found)


def _independent(n: float, alike: Floats) -> float:
    """Independent blocks that tell as much about the mean as `n` neighbouring ones."""
    lags = np.arange(1, len(alike) + 1)
    return float(n / (1 + 2 * np.sum(np.clip(1 - lags / n, 0.0, 1.0) * alike)))


def _time(block: Block) -> float:
    return block.ts


def _by_load(blocks: Iterable[Block]) -> ByLoad:
    found: defaultdict[Load, list[Block]] = defaultdict(list)
    for block in blocks:
        found[block.load].append(block)
    return found


def _tokens(blocks: Iterable[Block]) -> int:
    return sum(block.tokens for block in blocks)


def _ms(blocks: Iterable[Block]) -> float:
    return sum(block.ms for block in blocks)


def _quantile(freedom: float, confidence: float) -> float:
    from scipy.special import stdtrit  # a quarter of a second that nobody waits for before a change is compared

    return float(stdtrit(freedom, (1 + confidence) / 2))
