"""How far the steps of a load lie from the fit: as the table has measured it, or between two K that it has.

A load is a K and a padded batch. What it measured at one length of context stands for the others. Of a K that the
engine never ran, between two that it did, the fit's interpolation is as good as the two are; beyond them nothing is.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from engine.step_time.cells import Cells

Basis = Literal["measured", "between", "unknown"]

_CONTEXT: Final = (1 << 20) - 1
_BATCH: Final = (1 << 28) - 1


class Factor(NamedTuple):
    """What to multiply the fit by."""

    value: float
    basis: Basis
    cell: int | None
    """The cell of the table that it is taken from; None where it is none's."""


class Load(NamedTuple):
    k: int
    batch: int
    """Padded."""
    context: int


def load_of(code: int) -> Load:
    """The load that a cell's code stands for."""
    return Load(code >> 48, code >> 20 & _BATCH, code & _CONTEXT)


class Factors:
    def __init__(self, cells: Cells) -> None:
        self._measured: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        """By batch and K: context, code and factor of each measured cell."""
        for code, factor, known in zip(cells.code.tolist(), cells.factor.tolist(), cells.known.tolist(), strict=True):
            if known:
                load = load_of(code)
                self._measured.setdefault((load.batch, load.k), []).append((load.context, code, factor))

    def of(self, code: int) -> Factor:
        """The factor of one cell, as good as it is known."""
        load = load_of(code)
        own = self._nearest(load.batch, load.k, load.context)
        if own is not None:
            return Factor(own[2], "measured", own[1])
        lengths = sorted(k for batch, k in self._measured if batch == load.batch)
        below = max((k for k in lengths if k < load.k), default=None)
        above = min((k for k in lengths if k > load.k), default=None)
        if below is None or above is None:
            return Factor(1.0, "unknown", None)
        left, right = (self._nearest(load.batch, k, load.context) for k in (below, above))
        assert left is not None
        assert right is not None
        share = (load.k - below) / (above - below)
        return Factor(left[2] + share * (right[2] - left[2]), "between", None)

    def _nearest(self, batch: int, k: int, context: int) -> tuple[int, int, float] | None:
        return min(self._measured.get((batch, k), ()), key=lambda cell: (abs(cell[0] - context), cell[0]), default=None)
