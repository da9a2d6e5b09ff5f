"""The draft schedule that a map proposes, from the cells of the mix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from store.operating_map.cells import NEGLIGIBLE, Measured
from store.operating_map.loads import Load
from store.rehearsal.arms import drafts

REGRET: Final = 1.05
"""Where noise hides whether drafting helps, the K of the cell beside it is taken unless another showed this gain over
it."""

Schedule = list[tuple[int, int, int]]


def schedule(cells: Sequence[Measured | None], columns: Sequence[Load]) -> Schedule | None:
    """K by running sequences, in vLLM's form: gaps and the tail carry the K before them. None where nothing was
    measured.

    Args:
        cells: of the mix, one for each column, of arms that a schedule can execute; None where it was not measured, or
            the arm that drafts least was not: the others may be there because they are slow.

    Where it is clear whether drafting helps, the least K that can't be told from the best and showed next to no loss
    against it: the grid of the map, which says what can be told, may name a lower one. Where it is not, the K of the
    nearest cell below or above where it is, if that is as good here, too (of two the lower); else the least that is as
    good. Noise hides large losses of a lower K where repeats are few, so it must have shown next to none. A cell that
    was not measured takes the lower K of its neighbours: never more than was measured to help with fewer sequences
    running, nor more than helps with more of them.
    """
    clear = [_least(cell) if cell is not None and cell.decided() else None for cell in cells]
    chosen = [
        None if cell is None else known if known is not None else _unclear(cell, _beside(clear, place))
        for place, (cell, known) in enumerate(zip(cells, clear, strict=True))
    ]
    if all(k is None for k in chosen):
        return None
    filled = [k if k is not None else min(_beside(chosen, place)) for place, k in enumerate(chosen)]
    return _merged(columns, filled)


def _least(cell: Measured) -> int:
    return min(_good(cell, NEGLIGIBLE))


def _unclear(cell: Measured, beside: list[int]) -> int:
    fitting = [k for k in beside if k in _good(cell, REGRET)]
    return min(fitting or _good(cell, NEGLIGIBLE))


def _good(cell: Measured, limit: float) -> set[int]:
    """K of arms that are as good as the top one, and over which it showed no gain of `limit`."""
    top = cell.top()
    return {max(0, drafts(arm)) for arm in cell.as_good() if cell.arms.ratio(top, arm).value < limit}


def _beside(chosen: Sequence[int | None], place: int) -> list[int]:
    """The nearest K on each side that is there."""
    below = next((k for k in reversed(chosen[:place]) if k is not None), None)
    above = next((k for k in chosen[place + 1 :] if k is not None), None)
    return [k for k in (below, above) if k is not None]


def _merged(columns: Sequence[Load], filled: Sequence[int]) -> Schedule:
    found: Schedule = []
    for (first, last), k in zip(columns, filled, strict=True):
        if found and found[-1][2] == k:
            found[-1] = (found[-1][0], last, k)
        else:
            found.append((first, last, k))
    return found
