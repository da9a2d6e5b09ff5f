"""The charts under the bucket table: α over time, and beside it K executed and load. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.app.drawing import charts, numbers
from console.app.drawing.spans import EMPTY, Line, Role, Span, clean, cut, packed, right, width_of
from console.app.live.columns import bucket_name
from console.feed.messages import BucketView, EngineView, Event, Series

GUTTER: Final = 5
"""Cells left of a plot: the figure of the axis and the axis itself."""

MARKS: Final[dict[str, tuple[str, Role]]] = {
    "control": ("c", "accent"),
    "restart": ("↻", "warn"),
    "version": ("v", "accent"),
    "gap": ("░", "warn"),
    "alert": ("▲", "warn"),
}

_STEPS: Final = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)

Canvas = list[list[Span]]
"""Rows of single cells, each with its role."""


def alpha_chart(series: Series | None, width: int, height: int) -> list[Line]:
    """α of a bucket as a line, with what happened in the meantime as marked columns."""
    wide, high = width - GUTTER, height - 1
    if series is None or wide < 10 or high < 2:
        return [(("  no data of this bucket yet", "faint"),)]
    values = [point.alpha for point in series.points]
    low, top = charts.rate_scale(values)
    canvas = _canvas(charts.line(values, wide, high, low, top), "alpha")
    _mark(canvas, series, wide)
    labels = {0: numbers.fraction(top), high - 1: numbers.fraction(low)}
    if high >= 5:
        labels[(high - 1) // 2] = numbers.fraction((top + low) / 2)
    return [*_with_axis(canvas, labels), _time_axis(series, wide)]


def load_chart(series: Series | None, width: int, height: int, engine: EngineView | None) -> list[Line]:
    """K executed above, running sequences below, on one time axis; a last line says which policy that is."""
    footer = _policy_line(engine, width)
    wide, high = width - GUTTER, height - 1 - (1 if footer else 0)
    if series is None or wide < 10 or high < 4:
        return [(("  no data of this bucket yet", "faint"),), footer]
    upper = (high - 1 + 1) // 2
    lower = high - upper
    ks = [point.executed_k for point in series.points]
    runs = [point.running for point in series.points]
    top_k = charts.nice_ceiling(
        max([*(k for k in ks if k is not None), float((engine.max_k if engine else None) or 1), 1.0])
    )
    top_run = charts.nice_ceiling(max([*(run for run in runs if run is not None), 1.0]))
    k_canvas = _canvas(charts.area(ks, wide, upper, top_k), "k")
    run_canvas = _canvas(charts.area(runs, wide, lower, top_run), "load")
    _mark(k_canvas, series, wide)
    _write(k_canvas, 0, "K executed")
    _write(run_canvas, 0, "running")
    return [
        *_with_axis(k_canvas, {0: f"{top_k:g}"}),
        *_with_axis(run_canvas, {0: f"{top_run:g}"}),
        _time_axis(series, wide),
        *([footer] if footer else []),
    ]


def spark_line(bucket: BucketView | None, width: int) -> Line:
    """The selected bucket in one line, where there is no room for a chart."""
    if bucket is None:
        return EMPTY
    figures = bucket.figures
    error = numbers.half_width(figures.alpha_low, figures.alpha_high)
    start: Line = ((f" {bucket_name(bucket.key)} ", "bright"), ("α ", "dim"))
    end: Line = (
        (f" {numbers.fraction(figures.alpha)}", "bright"),
        (f" ±{error}" if error else "", "dim"),
        (f"  n {numbers.count(figures.sequences)}, {clean(bucket.window_label)}", "dim"),
    )
    start = cut(start, max(10, width - width_of(end) - 8))
    room = max(0, min(45, width - width_of(start) - width_of(end) - 1))
    return (*start, (charts.spark(bucket.spark, room), "alpha"), *end)


def alpha_title(bucket: BucketView | None, seconds: float) -> str:
    if bucket is None:
        return "α"
    return f"α · {bucket_name(bucket.key)} · last {numbers.duration(seconds)}"


def _policy_line(engine: EngineView | None, width: int) -> Line:
    if engine is None or engine.configured is None:
        return EMPTY
    executed = numbers.ABSENT if engine.executed_k is None else f"K {engine.executed_k}"
    limit = f" ({clean(engine.executed_limit)})" if engine.executed_limit and engine.executed_k is not None else ""
    text = f" configured {numbers.mode(engine.configured)} → resolved {numbers.mode(engine.resolved)} → "
    return cut(((text, "dim"), (f"{executed}{limit}", "critical" if engine.unexplained else "text")), width)


def _canvas(rows: Sequence[str], role: Role) -> Canvas:
    return [[(char, role) for char in row] for row in rows]


def _write(canvas: Canvas, row: int, text: str) -> None:
    """Write a caption at the right end of a row, over blanks only, so that it hides no figure."""
    cells = canvas[row]
    start = len(cells) - len(text)
    if start >= 0 and all(char == " " for char, _ in cells[start:]):
        cells[start:] = [(char, "dim") for char in text]
    elif all(char == " " for char, _ in cells[: len(text)]):
        cells[: len(text)] = [(char, "dim") for char in text]


def _mark(canvas: Canvas, series: Series, width: int) -> None:
    start, end = _range(series)
    placed = [(place, event) for event in series.marks if (place := _place(event.ts, start, end, width)) is not None]
    for place in charts.spread(place for place, _ in placed):
        for row in canvas:
            if row[place][0] == " ":
                row[place] = ("┊", "faint")
    for place, event in placed:
        canvas[0][place] = _glyph(event)


def _glyph(event: Event) -> tuple[str, Role]:
    return MARKS.get(event.kind, ("·", "dim"))


def _range(series: Series) -> tuple[float, float]:
    if not series.points:
        return 0.0, 0.0
    return series.points[0].ts - series.cell_seconds, series.points[-1].ts


def _place(ts: float, start: float, end: float, width: int) -> int | None:
    if end <= start or not start <= ts <= end:
        return None
    return min(width - 1, int((ts - start) / (end - start) * width))


def _with_axis(canvas: Canvas, labels: dict[int, str]) -> list[Line]:
    lines: list[Line] = []
    for index, row in enumerate(canvas):
        label = labels.get(index)
        axis: Span = (
            f"{right(label, GUTTER - 1)}┤" if label else " " * (GUTTER - 1) + "│",
            "faint" if not label else "dim",
        )
        lines.append((axis, *packed(row)))
    return lines


def _time_axis(series: Series, width: int) -> Line:
    start, end = _range(series)
    cells: list[Span] = [("─", "faint")] * width
    if end > start:
        seconds_a_cell = (end - start) / width
        step = next((step for step in _STEPS if step / seconds_a_cell >= 12), _STEPS[-1])
        tick = -(-int(start) // step) * step
        while tick < end:
            place = int((tick - start) / seconds_a_cell)
            label = numbers.minutes(tick)
            if place + len(label) <= width:
                cells[place : place + len(label)] = [(char, "dim") for char in label]
            tick += step
    return ((" " * (GUTTER - 1) + "└", "faint"), *packed(cells))
