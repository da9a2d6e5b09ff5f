"""The frame of a bucket's charts: one time axis for all, figures at the left, marks and the cursor across. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.app.bucket.facts import GLYPHS, BucketFacts
from console.app.drawing import charts, numbers, plots
from console.app.drawing.plots import Canvas
from console.app.drawing.spans import Line, Span, packed, right

_STEPS: Final = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)


@dataclass(frozen=True)
class Frame:
    """`wide`: cells of a plot; `gutter`: cells left of it, for the figure of the axis and the axis itself."""

    facts: BucketFacts
    wide: int
    gutter: int

    @property
    def full(self) -> int:
        return self.gutter + self.wide

    def canvas(self, height: int) -> Canvas:
        return plots.empty(self.wide, height)

    def framed(self, canvas: Canvas, top: str, bottom: str = "") -> list[Line]:
        """The lines of a chart, with marks and the cursor over its blanks."""
        self.cross(canvas)
        labels = {len(canvas) - 1: bottom, 0: top}
        return [self._axis(labels.get(row, ""), line) for row, line in enumerate(canvas)]

    def cross(self, canvas: Canvas) -> None:
        for place in charts.spread(self._place(mark.ts) for mark in self.facts.marks):
            _column(canvas, place, "┊", "faint")
        if self._chosen is not None:
            _column(canvas, self._chosen, "│", "bright")

    def marks(self) -> Line:
        """A sign for each mark; where several meet, the first of `GLYPHS`."""
        cells: list[Span] = [(" ", "text")] * self.wide
        for kind in reversed(GLYPHS):
            glyph, role, _ = GLYPHS[kind]
            for mark in self.facts.marks:
                if mark.kind == kind:
                    cells[self._place(mark.ts)] = (glyph, role)
        return ((f"{'marks':<{self.gutter}}", "dim"), *packed(cells))

    def time(self) -> Line:
        facts = self.facts
        cells: list[Span] = [("─", "faint")] * self.wide
        seconds = (facts.end - facts.start) / self.wide
        step = next((step for step in _STEPS if step / seconds >= 12), _STEPS[-1])
        tick = -(-int(facts.start) // step) * step
        while tick < facts.end:
            place, label = int((tick - facts.start) / seconds), numbers.minutes(tick)
            if place + len(label) <= self.wide:
                cells[place : place + len(label)] = [(char, "dim") for char in label]
            tick += step
        if self._chosen is not None:
            cells[self._chosen] = ("▲", "bright")
        return ((" " * (self.gutter - 1) + "└", "faint"), *packed(cells))

    def _axis(self, label: str, row: Sequence[Span]) -> Line:
        edge: Span = (
            f"{right(label, self.gutter - 1)}{'┤' if label else '│'}",
            "dim" if label else "faint",
        )
        return (edge, *packed(row))

    @property
    def _chosen(self) -> int | None:
        """The column of the moment that was chosen."""
        facts = self.facts
        if facts.at is None or facts.index is None:
            return None
        return min(self.wide - 1, int((facts.index + 0.5) / len(facts.points) * self.wide))

    def _place(self, ts: float) -> int:
        facts = self.facts
        return min(self.wide - 1, max(0, int((ts - facts.start) / (facts.end - facts.start) * self.wide)))


def _column(canvas: Canvas, column: int, char: str, role: str) -> None:
    span: Span = (char, "bright" if role == "bright" else "faint")
    for row in canvas:
        if row[column][0] in (" ", "┊", plots.BAND):
            row[column] = span
