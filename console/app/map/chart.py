"""Gain against running sequences, a line for each arm, drawn by plotext. Pure but for plotext's own figure.

Each point is the arm's own sign (its K, or the first letter), so that no colour is needed to tell them apart; a line
ends where an arm was not measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from console.app.drawing.spans import Line, Role, Span, packed
from console.app.map import words
from store.operating_map.records import OperatingMap
from store.rehearsal.plan import fixed_k

LEAST_WIDTH, LEAST_HEIGHT = 30, 7

_ROLES: Final[tuple[Role, ...]] = ("dim", "alpha", "ok", "warn", "fallback", "load", "critical", "text")
"""In the order of the arms; the baseline is dim."""

_FIRST_COLOUR: Final = 20
_PIECE: Final = re.compile(r"\x1b\[(?:38;5;)?(\d+)m")


def gain_title(workload: str | None) -> str:
    return f"gain against running · {words.row_name(workload)}"


def gain_chart(map_: OperatingMap, workload: str | None, width: int, height: int) -> list[Line]:
    """The chart with a legend beneath it, or a line that says why there is none."""
    curves = _curves(map_, workload)
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return []
    if not any(any(gain is not None for gain in gains) for _, gains in curves):
        return [(("  nothing of it was measured", "dim"),)]
    labels = tuple(words.range_label(load) for load in map_.loads)
    drawn = _drawn(tuple((_sign(arm), tuple(gains)) for arm, gains in curves), labels, width, height - 1)
    return [*drawn, _legend([arm for arm, _ in curves])]


def _curves(map_: OperatingMap, workload: str | None) -> list[tuple[str, list[float | None]]]:
    """Each arm's gain over the columns, in the order of the arms, the baseline first."""
    gains: dict[str, list[float | None]] = {map_.baseline: [None] * len(map_.loads)}
    for column, load in enumerate(map_.loads):
        for arm in words.cell_of(map_, workload, load).arms:
            gains.setdefault(arm.arm, [None] * len(map_.loads))[column] = words.gain_of(map_, arm)
    return list(gains.items())


def _sign(arm: str) -> str:
    k = fixed_k(arm)
    return arm[:1] if k is None else f"{k}"[-1]


def _legend(arms: list[str]) -> Line:
    spans: list[Span] = [("   ", "text")]
    for index, arm in enumerate(arms):
        spans += [(_sign(arm), _role(index)), (f" {arm}   ", "dim")]
    return tuple(spans)


def _role(index: int) -> Role:
    return _ROLES[min(index, len(_ROLES) - 1)]


@lru_cache(maxsize=8)
def _drawn(
    curves: tuple[tuple[str, tuple[float | None, ...]], ...], labels: tuple[str, ...], width: int, height: int
) -> list[Line]:
    """A figure takes plotext 3 ms, and the screen is drawn four times a second."""
    import plotext  # 20 ms, and only this screen needs it

    figure: Any = plotext
    figure.clear_figure()
    figure.limit_size(False, False)
    figure.plot_size(width, height)
    for part in (figure.axes_color, figure.canvas_color, figure.ticks_color):
        part("default")
    for index, (_, gains) in enumerate(curves):
        for xs, ys in _runs(gains):
            figure.plot(xs, ys, marker="braille", color=_FIRST_COLOUR + index)
    for index, (sign, gains) in enumerate(curves):
        for xs, ys in _runs(gains):
            figure.scatter(xs, ys, marker=sign, color=_FIRST_COLOUR + index)
    _scale(figure, [gain for _, gains in curves for gain in gains if gain is not None])
    figure.xlim(-0.1, len(labels) - 0.9)
    figure.xticks(range(len(labels)), labels)
    figure.xaxes(True, False)
    figure.yaxes(True, False)
    return [_line(text) for text in figure.build().rstrip("\n").split("\n")]


def _scale(figure: Any, gains: list[float]) -> None:
    """Round figures on the axis, 1 among them."""
    low, high = math.floor(min([*gains, 1.0]) * 10 - 0.5) / 10, math.ceil(max([*gains, 1.0]) * 10 + 0.5) / 10
    step = next(step for step in (0.1, 0.2, 0.5, 1.0, 1000.0) if (high - low) / step <= 7)
    ticks = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
    figure.ylim(low, high)
    figure.yticks(ticks, [f"{tick:.1f}" for tick in ticks])


def _runs(gains: tuple[float | None, ...]) -> Iterator[tuple[list[int], list[float]]]:
    """Neighbouring columns that were measured."""
    xs: list[int] = []
    ys: list[float] = []
    for x, gain in enumerate([*gains, None]):
        if gain is not None:
            xs.append(x)
            ys.append(gain)
        elif xs:
            yield xs, ys
            xs, ys = [], []


def _line(text: str) -> Line:
    """A line of plotext's with its colours as roles: the arms' own, and dim for the axes."""
    role: Role = "dim"
    spans: list[Span] = []
    at = 0
    for code in _PIECE.finditer(text):
        if text[at : code.start()]:
            spans.append((text[at : code.start()], role))
        colour = int(code[1])
        role = _role(colour - _FIRST_COLOUR) if colour >= _FIRST_COLOUR else "dim"
        at = code.end()
    spans.append((text[at:], role))
    return packed([span for span in spans if span[0]])
