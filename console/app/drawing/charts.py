"""Small charts as text: sparkline, bars, braille line, stepped area. Pure: numbers in, strings out.

Own code instead of plotext: the whole need is a line and an area on a time axis. Measured on two cores, importing
`textual_plotext` adds 30 ms to the first paint, a figure of 58×11 takes it 5 ms where `bucket_charts` takes 0.2 ms, and
it joins a line over a gap, where nothing was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

EIGHTHS = "▁▂▃▄▅▆▇█"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille bits by row (top first) and column."""

APART: Final = 4
"""Cells between two lines of marks: closer ones would be a wall before the curve."""


def spark(values: Sequence[float | None], width: int, low: float = 0.0, high: float = 1.0) -> str:
    """A row of bars on a fixed scale, one for each cell; a blank where nothing was measured."""
    return "".join(_bar(value, low, high) for value in resample(values, width))


def bars(shares: Sequence[float]) -> str:
    """Shares of a whole as bars, `·` for none at all."""
    return "".join("·" if share <= 0.0 else EIGHTHS[min(7, int(share * 7.999))] for share in shares)


def resample(values: Sequence[float | None], width: int) -> list[float | None]:
    """Spread values over `width` cells: means of what falls into one, None where that is nothing."""
    if not values or width <= 0:
        return [None] * max(0, width)
    size = len(values)
    cells: list[float | None] = []
    for index in range(width):
        first = index * size // width
        last = max(first + 1, (index + 1) * size // width)
        present = [value for value in values[first:last] if value is not None]
        cells.append(sum(present) / len(present) if present else None)
    return cells


def line(values: Sequence[float | None], width: int, height: int, low: float, high: float) -> list[str]:
    """A line in braille dots, `height` rows of `width` cells, top row first; it breaks where a value is None."""
    dots_wide, dots_high = width * 2, height * 4
    grid = [[0] * width for _ in range(height)]
    span = (high - low) or 1.0

    def row_of(value: float) -> int:
        share = (min(max(value, low), high) - low) / span
        return dots_high - 1 - round(share * (dots_high - 1))

    previous: int | None = None
    for x, value in enumerate(resample(values, dots_wide) if len(values) > dots_wide else _stretch(values, dots_wide)):
        if value is None:
            previous = None
            continue
        y = row_of(value)
        for dot in _between(previous, y):
            grid[dot // 4][x // 2] |= _DOTS[dot % 4][x % 2]
        previous = y
    return ["".join(chr(0x2800 + cell) if cell else " " for cell in row) for row in grid]


def area(values: Sequence[float | None], width: int, height: int, high: float) -> list[str]:
    """Bars from 0 to `high`, `height` rows of `width` cells, top row first. A 0 shows as a thin line."""
    columns = resample(values, width) if len(values) > width else _stretch(values, width)
    rows: list[str] = []
    for row in range(height):
        floor = height - 1 - row
        rows.append("".join(_area_cell(value, floor, height, high) for value in columns))
    return rows


def nice_ceiling(value: float) -> float:
    """The next round number at or above `value`, at least 1."""
    if value <= 1:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(value))
    for step in (1, 2, 4, 5, 8, 10):
        if value <= step * magnitude:
            return step * magnitude
    return 10 * magnitude


def spread(places: Iterable[int]) -> Iterator[int]:
    """Of places along a chart those that get a line: the first, and what is far enough from the one before."""
    last: int | None = None
    for place in sorted(places):
        if last is None or place - last >= APART:
            yield place
            last = place


def rate_scale(values: Sequence[float | None]) -> tuple[float, float]:
    """Bounds in tenths around rates in 0…1, at least three tenths apart, so that noise doesn't look like drama."""
    present = [value for value in values if value is not None]
    if not present:
        return 0.0, 1.0
    low = max(0, math.floor(min(present) * 10 - 0.5))
    high = min(10, math.ceil(max(present) * 10 + 0.5))
    while high - low < 3:
        low, high = max(0, low - 1), min(10, high + 1)
    return low / 10, high / 10


def _bar(value: float | None, low: float, high: float) -> str:
    if value is None:
        return " "
    share = (value - low) / ((high - low) or 1.0)
    return EIGHTHS[min(7, max(0, int(share * 7.999)))]


def _stretch(values: Sequence[float | None], width: int) -> list[float | None]:
    """Repeat values so that they fill `width` places."""
    size = len(values)
    return [values[index * size // width] for index in range(width)] if size else [None] * width


def _between(previous: int | None, current: int) -> range:
    """The dots of one column that join it to the one before."""
    if previous is None or previous == current:
        return range(current, current + 1)
    return range(previous + 1, current + 1) if previous < current else range(current, previous)


def _area_cell(value: float | None, floor: int, height: int, high: float) -> str:
    if value is None:
        return " "
    filled = min(value / high, 1.0) * height - floor
    if filled >= 1:
        return "█"
    if filled <= 0:
        return "▁" if floor == 0 else " "
    return EIGHTHS[min(7, int(filled * 8))]
