"""Ranges of running sequences: the columns of the map."""

from __future__ import annotations

Load = tuple[int, int]
"""First to last, both included."""


def loads(most: int) -> list[Load]:
    """1, 2, 3-4, 5-8, 9-16 … up to `most` sequences, the last range cut there: each twice as wide as the one before, as
    the effect of a sequence more shrinks with how many run."""
    found: list[Load] = []
    last = 1
    first = 1
    while first <= most:
        found.append((first, min(last, most)))
        first, last = last + 1, last * 2
    return found


def band(load: Load, running: int) -> int:
    """Which quarter of a range: inside one, steps are held against each other as if equally many sequences ran. Ranges
    up to 4 wide have one for each number."""
    first, last = load
    width = last - first + 1
    return running - first if width <= 4 else (running - first) * 4 // width


def shown(load: Load) -> str:
    first, last = load
    return str(first) if first == last else f"{first}–{last}"
