"""How many draft steps a line of vLLM's log stands for, which it doesn't print.

It prints, of n draft steps with D draft and A accepted tokens: D, A, 1 + A/n to two digits, and for each position
c/n to three digits, where the c are whole and sum to A (vllm/v1/spec_decode/metrics.py). All of it together leaves
few n, often one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf
from typing import Final

_LENGTH_ERROR: Final = 0.005 + 1e-9
_RATE_ERROR: Final = 0.0005 + 1e-9
_SCANNED: Final = 32


def estimated_draft_steps(accepted: int, drafted: int, length: float | None, rates: Sequence[float]) -> int:
    """The most likely n. Where every draft could have been full, they were; else n is the one nearest to A / Σ rates
    that agrees with every printed number, or just that quotient where none does.

    Args:
        length: mean acceptance length as printed, ≥ 1; None where it was not.
        rates: acceptance rate of each position as printed.
    """
    low, high = _bounds(accepted, drafted, length, rates)
    if rates and drafted % len(rates) == 0:
        full = drafted // len(rates)
        if low <= full <= high and agrees(full, accepted, rates):
            return full
    centre = min(max(_quotient(accepted, length, rates, low), low), high)
    near = range(max(low, round(centre) - _SCANNED), min(high, round(centre) + _SCANNED) + 1)
    nearest = sorted(near, key=lambda n: abs(n - centre))
    return next((n for n in nearest if agrees(n, accepted, rates)), round(centre))


def agrees(steps: int, accepted: int, rates: Sequence[float]) -> bool:
    """Whether `steps` draft steps can have shown these rates: a whole count at each position, `accepted` in all."""
    least = [ceil(steps * (rate - _RATE_ERROR)) for rate in rates]
    most = [floor(steps * (rate + _RATE_ERROR)) for rate in rates]
    if not rates:
        return True
    return all(map(int.__le__, least, most)) and sum(least) <= accepted <= sum(most)


def _bounds(accepted: int, drafted: int, length: float | None, rates: Sequence[float]) -> tuple[int, int]:
    """Least and most n. A draft holds between one token and one for each position; a bound that contradicts the ones
    before it is passed over."""
    low, high = (-(-drafted // len(rates)) if rates else min(drafted, 1)), drafted
    ratios = [] if length is None else [(length - 1, _LENGTH_ERROR)]
    ratios += [(sum(rates), len(rates) * _RATE_ERROR)] if rates else []
    for ratio, error in ratios:
        least = ceil(accepted / (ratio + error))
        most = floor(accepted / (ratio - error)) if ratio > error else inf
        if max(low, least) <= min(high, most):
            low, high = max(low, least), int(min(high, most))
    return low, high


def _quotient(accepted: int, length: float | None, rates: Sequence[float], otherwise: int) -> float:
    """A over the mean number of accepted tokens, from the finer of the printed figures."""
    mean = sum(rates) or (length or 1.0) - 1
    return accepted / mean if mean > 0 else otherwise
