"""Walks a policy over positions: how likely, and under bounds whether, a step starts at each of them.

A step that starts at position p with draft length K drafts p, p+1, … p+K−1, and accepts them up to the first that is
not right; it emits those and one more, and the next step starts behind. An unknown position is right with a chance,
independent of all others; a position is met by at most one draft, so the expected number of steps that start at each
position follows exactly, by passing on the probability of a start from one position to those behind it. Three walks are
made at once: with the chances, with every unknown position wrong, and with every one right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from store.counts import Bools, Ints
from store.whatif.layout import Layout
from store.whatif.reading import Floats

FILLED: Final = 0
WRONG: Final = 1
RIGHT: Final = 2
WALKS: Final = 3


@dataclass(frozen=True)
class Walked:
    """Of each position, in the order of the layout."""

    starts: Floats
    """(3, positions): expected steps that start here, in the walks `FILLED`, `WRONG` and `RIGHT`."""
    inexact: Floats
    """(positions,): of the first walk, those that met an unknown position."""


@dataclass(frozen=True)
class Chances:
    """Whether a draft token is right at each position, in the order of the layout."""

    chance: Floats
    """(3, positions)"""
    unknown: Bools
    never: Bools
    """Nobody ever asked for a draft there: the chance of the first walk is that of the depth in the draft, …"""
    by_depth: Floats
    """… (groups, depths): of the first token of a draft, of the second once the first was accepted, and so on."""
    group: npt.NDArray[np.int32]
    """Whose row of `by_depth` each position takes."""


def walk(laid: Layout, chances: Chances, k: Ints) -> Walked:
    """Walk with draft length `k` of a step that starts at each position (in the order of the layout)."""
    starts = np.zeros((WALKS, len(laid.order)))
    inexact = np.zeros(len(laid.order))
    starts[:, : laid.width(0)] = 1.0
    longest = int(k.max(initial=0))
    for depth in range(laid.depths):
        _step(laid, chances, k, depth, longest, starts, inexact)
    return Walked(starts, inexact)


def _step(laid: Layout, chances: Chances, k: Ints, depth: int, longest: int, starts: Floats, inexact: Floats) -> None:
    """Pass on the starts at one depth. A step that would reach beyond its stretch ends with it."""
    first = int(laid.offset[depth])
    reach = starts[:, first : first + laid.width(depth)]
    for drafted in range(longest):
        here, width = depth + drafted, laid.width(depth + drafted)
        if not width:
            return
        at, mine = slice(int(laid.offset[here]), int(laid.offset[here]) + width), slice(first, first + width)
        reach = reach[:, :width]
        drafts = k[mine] > drafted
        passed = reach * np.where(drafts, _chance(chances, at, drafted), 0.0)
        np.maximum(inexact[mine], np.where(drafts & chances.unknown[at], reach[FILLED], 0.0), out=inexact[mine])
        _arrive(laid, starts, here + 1, reach - passed)
        reach = passed
        if not reach.any():
            return
    _arrive(laid, starts, depth + longest + 1, reach)


def _chance(chances: Chances, at: slice, drafted: int) -> Floats:
    chance = chances.chance[:, at]
    never = chances.never[at]
    if not never.any():
        return chance
    depth = min(drafted, chances.by_depth.shape[1] - 1)
    chance = chance.copy()
    chance[FILLED] = np.where(never, chances.by_depth[chances.group[at], depth], chance[FILLED])
    return chance


def _arrive(laid: Layout, starts: Floats, depth: int, reach: Floats) -> None:
    width = min(laid.width(depth), reach.shape[1])
    if width:
        first = int(laid.offset[depth])
        starts[:, first : first + width] += reach[:, :width]
