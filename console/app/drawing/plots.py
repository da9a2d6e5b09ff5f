"""Curves with their intervals on a canvas of cells, and bars that lie. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from console.app.drawing import charts
from console.app.drawing.spans import Role, Span

Canvas = list[list[Span]]
"""Rows of single cells, top row first, each cell with its role."""
Values = Sequence[float | None]
Scale = tuple[float, float]

_LYING: Final = " ▏▎▍▌▋▊▉█"
BAND: Final = "░"


def empty(width: int, height: int) -> Canvas:
    return [[(" ", "text")] * width for _ in range(height)]


def spread(values: Values, width: int) -> list[float | None]:
    """Values over `width` places, joined by straight lines from middle to middle; none where a value is missing."""
    size = len(values)
    if not size or width <= 0:
        return [None] * max(0, width)
    if size >= width:
        return charts.resample(values, width)
    return [_between(values, (place + 0.5) / width * size - 0.5) for place in range(width)]


def _between(values: Values, position: float) -> float | None:
    own = values[min(len(values) - 1, max(0, round(position)))]
    if own is None:
        return None
    first = math.floor(position)
    if not 0 <= first < len(values) - 1:
        return own
    left, right = values[first], values[first + 1]
    return own if left is None or right is None else left + (right - left) * (position - first)


def curve(canvas: Canvas, values: Values, scale: Scale, role: Role) -> None:
    """A line in braille dots over what is there; it breaks where a value is missing."""
    height, width = len(canvas), len(canvas[0])
    dots = spread(values, width * 2)
    for row, text in enumerate(charts.line(dots, width, height, *scale)):
        for column, char in enumerate(text):
            if char != " ":
                canvas[row][column] = (char, role)


def band(canvas: Canvas, low: Values, high: Values, scale: Scale) -> None:
    """The interval of each place as shade; cut at the edges of the scale."""
    height, width = len(canvas), len(canvas[0])
    for column, (least, most) in enumerate(zip(spread(low, width), spread(high, width), strict=True)):
        if least is None or most is None:
            continue
        for row in range(row_of(most, scale, height), row_of(least, scale, height) + 1):
            canvas[row][column] = (BAND, "faint")


def level(canvas: Canvas, value: float, scale: Scale, char: str, role: Role) -> None:
    """A line across at a value inside the scale, behind what is there."""
    if scale[0] <= value <= scale[1]:
        row = canvas[row_of(value, scale, len(canvas))]
        for column, (there, _) in enumerate(row):
            if there in (" ", BAND):
                row[column] = (char, role)


def points(canvas: Canvas, values: Values, scale: Scale, char: str, role: Role) -> None:
    """A sign at each value."""
    height, width = len(canvas), len(canvas[0])
    for index, value in enumerate(values):
        if value is not None:
            column = min(width - 1, int((index + 0.5) / len(values) * width))
            canvas[row_of(value, scale, height)][column] = (char, role)


def area(canvas: Canvas, values: Values, top: float, role: Role) -> None:
    """Bars from 0 up to `top`."""
    for row, text in enumerate(charts.area(values, len(canvas[0]), len(canvas), top)):
        canvas[row] = [(char, role) for char in text]


def write(canvas: Canvas, row: int, text: str) -> None:
    """Write at the left of a row, where nothing is drawn there."""
    if row < len(canvas) and len(text) < len(canvas[row]) and all(cell == " " for cell, _ in canvas[row][: len(text)]):
        canvas[row][1 : len(text) + 1] = [(char, "dim") for char in text]


def row_of(value: float, scale: Scale, height: int) -> int:
    """The row of a canvas that a value falls in; the outermost where it lies beyond the scale."""
    share = (min(max(value, scale[0]), scale[1]) - scale[0]) / ((scale[1] - scale[0]) or 1.0)
    return height - 1 - min(height - 1, int(share * height))


def bar(share: float, width: int) -> str:
    """A bar that lies, of `width` cells at 1."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_LYING[rest] if rest else "")).ljust(width)


def ratio_scale(values: Values) -> Scale:
    """Bounds in tenths around ratios such as speedups, 1 among them and at least four tenths apart."""
    present = [value for value in values if value is not None and math.isfinite(value)]
    low = math.floor(min([1.0, *present]) * 10 - 0.5)
    high = math.ceil(max([1.0, *present]) * 10 + 0.5)
    while high - low < 4:
        low, high = low - 1, high + 1
    return max(0, low) / 10, high / 10
