"""Tokens per second of arms that took turns, and what each is against no speculation.

A round runs every arm in some order and then in the reverse order, so a drift of the machine that is linear over the
round falls on all alike. An arm is compared with the baseline of the same round; rounds are the sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from engine.drafter.evaluation.acceptance import Estimate, Verification, acceptance_length
from engine.intervals import geometric_mean

BASELINE: Final = "none"
"""The arm without speculation, in an engine without a drafter."""

_Name = TypeVar("_Name")


class Timed(NamedTuple):
    """What an arm did in the blocks of one round."""

    tokens: int
    seconds: float
    verifications: list[list[Verification]]
    """Of each request."""


class Ratio(msgspec.Struct, frozen=True):
    """Geometric mean of the rounds' ratios to the baseline; the bounds are None where one round alone is known."""

    value: float
    low: float | None
    high: float | None


class Throughput(msgspec.Struct, frozen=True):
    arm: str
    batch: int
    tokens_per_second: float
    """All tokens over all seconds."""
    rounds: tuple[float, ...]
    """Tokens per second of each round."""
    ratio: Ratio | None
    """To the baseline; None for the baseline itself."""
    length: Estimate
    """Mean acceptance length in these blocks, tokens: what was executed, not what was asked."""


def order(names: Sequence[_Name], round_number: int) -> list[_Name]:
    """Every name twice, as a palindrome that begins one place later each round."""
    start = round_number % len(names)
    turned = [*names[start:], *names[:start]]
    return [*turned, *reversed(turned)]


def figures(batch: int, rounds: Sequence[Mapping[str, Timed]]) -> list[Throughput]:
    """One for each arm, in the order of the first round."""
    return [_throughput(arm, batch, rounds) for arm in rounds[0]] if rounds else []


def _throughput(arm: str, batch: int, rounds: Sequence[Mapping[str, Timed]]) -> Throughput:
    timed = [found[arm] for found in rounds]
    rates = tuple(one.tokens / one.seconds for one in timed)
    bases = [found[BASELINE].tokens / found[BASELINE].seconds for found in rounds]
    return Throughput(
        arm=arm,
        batch=batch,
        tokens_per_second=sum(one.tokens for one in timed) / sum(one.seconds for one in timed),
        rounds=rates,
        ratio=None if arm == BASELINE else ratio([rate / base for rate, base in zip(rates, bases, strict=True)]),
        length=acceptance_length([steps for one in timed for steps in one.verifications]),
    )


def ratio(pairs: Sequence[float]) -> Ratio:
    """Geometric mean of paired ratios with Student's t interval on their logarithms."""
    mean, interval = geometric_mean(pairs)
    return Ratio(mean, *(interval if interval is not None else (None, None)))
