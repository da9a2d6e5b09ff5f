"""Series of one bucket on one time axis: α, waste, K executed over the load, speedups; marks in a gutter. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from console.app.bucket.axis import Frame
from console.app.bucket.facts import BucketFacts
from console.app.bucket.readout import (
    MARGINAL,
    alpha_readout,
    k_readout,
    mark_line,
    short_readout,
    speedup_readout,
    waste_readout,
    why_no_speedup,
)
from console.app.drawing import charts, numbers, plots
from console.app.drawing.spans import EMPTY, Line, Role, Span, between, clean, cut, paragraph, wrap

ROOMY: Final = 21
"""Lines from which every series has a plot of its own."""
_SHADED: Final = 6
"""Lines of a plot from which shade tells an interval."""
_NARROWEST, _LOWEST = 30, 6
_GUTTER, _LABELS = 6, 12
"""Cells left of the plots: with the figures of their axes, and where a series is a line with its name and figure."""


def timeline(facts: BucketFacts, width: int, height: int) -> list[Line]:
    """At most `height` lines of at most `width` cells."""
    if width < _NARROWEST or height < _LOWEST:
        return [short_readout(facts, width)][:height]
    if not facts.known:
        return [cut(line, width) for line in _nothing(facts, width)][:height]
    if height >= ROOMY:
        drawn = _stacked(Frame(facts, width - _GUTTER - 1, _GUTTER), height)
    else:
        drawn = _sparks(Frame(facts, width - _LABELS - 1, _LABELS), height)
    return [cut(line, width) for line in drawn][:height]


def _nothing(facts: BucketFacts, width: int) -> list[Line]:
    if facts.trouble:
        text = facts.trouble
    elif facts.series is None:
        text = "reading the series …"
    else:
        text = f"No row of this bucket in the last {facts.span.name}. ] looks further back, 1 shows the busy ones."
    return paragraph(text, width, margin="  ")


def _stacked(frame: Frame, height: int) -> list[Line]:
    facts, room = frame.facts, height - 7
    alpha, waste, k, load = max(4, round(room * 0.34)), max(2, room // 7), max(2, room // 7), max(1, room // 9)
    k_top = _k_top(facts)
    return [
        between(alpha_readout(facts), _alpha_legend(facts), frame.full),
        *_alpha(frame, alpha),
        waste_readout(facts),
        *_waste(frame, waste),
        between(k_readout(facts), _limit(facts), frame.full),
        *_bars(frame, [point.executed_k for point in facts.points], "k", k_top, k),
        *_bars(frame, [point.running for point in facts.points], "load", 1.0, load),
        speedup_readout(facts),
        *_speedups(frame, room - alpha - waste - k - load),
        frame.marks(),
        frame.time(),
        ((" ", "text"), *mark_line(facts, frame.full - 1)),
    ]


def _sparks(frame: Frame, height: int) -> list[Line]:
    """α as a plot, the others in a line each, with their figure at the moment that is read out."""
    facts = frame.facts
    points, now = facts.points, facts.point
    most = charts.nice_ceiling(max([1.0, *(point.running for point in points if point.running is not None)]))
    one_place = "{:.1f}".format
    lines = [
        _spark(frame, "K", [point.executed_k for point in points], (0.0, _k_top(facts)), "k", one_place),
        _spark(frame, "run", [point.running for point in points], (0.0, most), "load", one_place),
        _spark(frame, "waste", [point.waste for point in points], (0.0, 1.0), "text", numbers.fraction),
        _spark(
            frame, "speed", [point.speedup for point in points],
            plots.ratio_scale([point.speedup for point in points]), "text", "{:.2f}".format,
        ),
    ]  # fmt: skip
    rows = max(3, height - 4 - len(lines))
    lines = lines[: max(0, height - 4 - rows)]
    assert now is not None
    last = mark_line(facts, frame.full - 1) or ((clean(why_no_speedup(facts)), "dim"),)
    return [
        ((" ", "text"), *short_readout(facts, frame.full - 1)),
        *_alpha(frame, rows),
        *lines,
        frame.marks(),
        frame.time(),
        ((" ", "text"), *last),
    ]


def _spark(
    frame: Frame,
    name: str,
    values: plots.Values,
    scale: plots.Scale,
    role: Role,
    told: Callable[[float], str],
) -> Line:
    index = frame.facts.index
    value = None if index is None else values[index]
    figure = numbers.ABSENT if value is None else told(value)
    spans: list[Span] = [(char, role) for char in charts.spark(plots.spread(values, frame.wide), frame.wide, *scale)]
    frame.cross([spans])
    return ((f"{name:<7}", "dim"), (f"{figure:>4} ", "text"), *spans)


def _alpha(frame: Frame, height: int) -> list[Line]:
    points, held = frame.facts.points, _level(frame.facts)
    values = [point.alpha for point in points]
    scale = charts.rate_scale([*values, None if held is None else held[0]])
    canvas = frame.canvas(height)
    if height >= _SHADED:
        plots.band(canvas, [point.alpha_low for point in points], [point.alpha_high for point in points], scale)
    if held is not None:
        plots.level(canvas, held[0], scale, "╌", "dim")
    plots.curve(canvas, values, scale, "alpha")
    return frame.framed(canvas, numbers.fraction(scale[1]), numbers.fraction(scale[0]))


def _alpha_legend(facts: BucketFacts) -> Line:
    parts: list[Span] = []
    if any(point.alpha_low is not None for point in facts.points):
        parts += [(f"{plots.BAND} ", "faint"), ("95 %", "dim")]
    held = _level(facts)
    if held is not None:
        parts += [("  ╌ " if parts else "╌ ", "dim"), (held[1], "dim")]
    return tuple(parts)


def _level(facts: BucketFacts) -> tuple[float, str] | None:
    """What the judge holds this bucket against, where that can be drawn beside α: at the depth that is drafted."""
    level = facts.detail.level if facts.detail is not None else None
    if level is None or level.depth != facts.usual_depth:
        return None
    if level.baseline is not None:
        return level.baseline, f"baseline 7 d {numbers.fraction(level.baseline)}"
    return None if level.pinned is None else (level.pinned, f"pinned {numbers.fraction(level.pinned)}")


def _waste(frame: Frame, height: int) -> list[Line]:
    values = [point.waste for point in frame.facts.points]
    scale = charts.rate_scale(values)
    canvas = frame.canvas(height)
    plots.curve(canvas, values, scale, "text")
    return frame.framed(canvas, numbers.fraction(scale[1]), numbers.fraction(scale[0]))


def _k_top(facts: BucketFacts) -> float:
    highest = [point.executed_k for point in facts.points if point.executed_k is not None]
    most = float((facts.engine.max_k if facts.engine is not None else None) or 1)
    return charts.nice_ceiling(max([1.0, most, *highest]))


def _limit(facts: BucketFacts) -> Line:
    """Which term of the policy set the engine's K, now."""
    engine = facts.engine
    if engine is None or engine.executed_limit is None or facts.at is not None:
        return EMPTY
    return ((f"now K {engine.executed_k} by {clean(engine.executed_limit)}", "dim"),)


def _bars(frame: Frame, values: plots.Values, role: Role, top: float, height: int) -> list[Line]:
    top = charts.nice_ceiling(max([top, *(value for value in values if value is not None)]))
    canvas = frame.canvas(height)
    plots.area(canvas, values, top, role)
    return frame.framed(canvas, f"{top:g}")


def _speedups(frame: Frame, height: int) -> list[Line]:
    points = frame.facts.points
    experienced, gains = [point.speedup for point in points], [point.marginal for point in points]
    scale = plots.ratio_scale([*experienced, *gains])
    canvas = frame.canvas(height)
    plots.band(canvas, [point.speedup_low for point in points], [point.speedup_high for point in points], scale)
    plots.level(canvas, 1.0, scale, "┄", "faint")
    plots.curve(canvas, experienced, scale, "text")
    plots.points(canvas, gains, scale, MARGINAL, "accent")
    for row, text in enumerate(wrap(clean(why_no_speedup(frame.facts)), frame.wide - 2)):
        plots.write(canvas, row, text)
    return frame.framed(canvas, f"{scale[1]:.1f}", f"{scale[0]:.1f}")
