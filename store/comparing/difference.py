"""The difference of two independent figures, from their own intervals. Arithmetic only."""

from __future__ import annotations

from math import hypot

import msgspec


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its 95 % interval, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """B − A."""

    a: Estimate
    b: Estimate
    difference: float
    low: float | None
    high: float | None
    """Of the difference, at 95 %; None where a side has no interval."""
    tells: bool | None
    """Whether the interval leaves out 0; None without one."""


def difference(a: Estimate | None, b: Estimate | None) -> Difference | None:
    """B − A with its interval; None where a side has no such figure.

    The errors of both sides are combined as they stand on the ends that face each other (MOVER: Zou and Donner,
    Statistics in Medicine 27, 2008; Newcombe's method for proportions): B − A − √((B − l_B)² + (u_A − A)²) up to
    B − A + √((u_B − B)² + (A − l_A)²). With symmetric intervals this is the root of the summed squared half-widths, a
    little wider than Welch's t. It holds for the exact intervals of nothing and all accepted, too, and for the speedup,
    whose interval is no symmetric one. An interval that is cut at 0 or 1 never decides whether the sides differ: on
    the ends that face each other it is cut only where the sides overlap anyway. What both sides share (a calibration,
    a sequence that lives through both) makes the interval wider than it need be, never narrower.
    """
    if a is None or b is None:
        return None
    delta = b.value - a.value
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return Difference(a=a, b=b, difference=delta, low=None, high=None, tells=None)
    low = delta - hypot(b.value - b.low, a.high - a.value)
    high = delta + hypot(b.high - b.value, a.value - a.low)
    return Difference(a=a, b=b, difference=delta, low=low, high=high, tells=not low <= 0 <= high)
