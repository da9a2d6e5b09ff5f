"""Acceptance of a drafter, position by position, from the rows of our own recorder.

Names and formulas are those of specdeck's definitions: a draft step is a decode row that had drafts to verify;
per-position acceptance is marginal (draft steps with at least j accepted / all draft steps) or conditional (… / draft
steps with at least j drafted and at least j - 1 accepted); the mean acceptance length counts the bonus token. Positions
are numbered from 0, as vLLM numbers them: position 0 is j = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.drafter.recipe import Kind
from engine.intervals import ratio_interval

Verification = tuple[int, int]
"""Draft tokens verified in one step of one sequence, and how many of them were accepted."""


class Estimate(msgspec.Struct, frozen=True):
    """A ratio of sums with its 95 % interval. None where there is nothing to divide, or too little to tell a spread."""

    over: float
    under: float
    value: float | None
    low: float | None
    high: float | None


class Position(msgspec.Struct, frozen=True):
    marginal: Estimate
    conditional: Estimate


class Acceptance(msgspec.Struct, frozen=True):
    """What one draft length did at one temperature on one kind of prompts."""

    kind: Kind
    k: int
    temperature: float
    requests: int
    tokens: int
    """Tokens of all answers."""
    draft_steps: int
    positions: tuple[Position, ...]
    """As many as `k`."""
    length: Estimate
    """Mean acceptance length, tokens: 1 + Σ accepted / draft steps."""


def measure(
    kind: Kind, k: int, temperature: float, tokens: int, requests: Sequence[Sequence[Verification]]
) -> Acceptance:
    """Of the verifications of each request; requests without any count in `requests` only."""
    drafting = [steps for steps in requests if steps]
    return Acceptance(
        kind=kind,
        k=k,
        temperature=temperature,
        requests=len(requests),
        tokens=tokens,
        draft_steps=sum(map(len, drafting)),
        positions=tuple(_position(drafting, number) for number in range(1, k + 1)),
        length=acceptance_length(drafting),
    )


def acceptance_length(requests: Sequence[Sequence[Verification]]) -> Estimate:
    """1 + Σ accepted / draft steps, with the interval of that ratio moved up by the bonus token."""
    accepted = estimate([(sum(a for _, a in steps), len(steps)) for steps in requests], share=False)
    return Estimate(
        over=accepted.over,
        under=accepted.under,
        value=_raised(accepted.value),
        low=_raised(accepted.low),
        high=_raised(accepted.high),
    )


def _raised(value: float | None) -> float | None:
    return None if value is None else 1 + value


def _position(requests: Sequence[Sequence[Verification]], number: int) -> Position:
    """`number` is j, from 1."""
    marginal = [(sum(a >= number for _, a in steps), len(steps)) for steps in requests]
    reached = [[(d, a) for d, a in steps if d >= number and a >= number - 1] for steps in requests]
    conditional = [(sum(a >= number for _, a in steps), len(steps)) for steps in reached]
    return Position(estimate(marginal), estimate(conditional))


def estimate(clusters: Sequence[tuple[float, float]], *, share: bool = True) -> Estimate:
    """Σx / Σy over requests (x, y), whose steps are alike: the sample is of requests, not of steps.

    Interval and `share` as in `engine.intervals.ratio_interval`.
    """
    pairs = [(x, y) for x, y in clusters if y]
    over, under = sum(x for x, _ in pairs), sum(y for _, y in pairs)
    if not pairs:
        return Estimate(0, 0, None, None, None)
    interval = ratio_interval([x for x, _ in pairs], [y for _, y in pairs], share=share)
    low, high = interval if interval is not None else (None, None)
    return Estimate(over, under, over / under, low, high)
