"""Widgets that show lines of spans and repaint only the lines that changed.

All views are pure functions of a picture and a size; these widgets are the only place where a role becomes a style.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from console.app.drawing.spans import EMPTY, Line, run_together, text_of, width_of
from console.app.drawing.themes import Palette

if TYPE_CHECKING:
    from textual import events

    from console.app.application import SpecdeckApp

Draw = Callable[[int, int], list[Line]]
"""Lines for a width and a height in cells; what is too long or too many is cut."""


def palette_of(widget: Widget) -> Palette:
    return cast("SpecdeckApp", widget.app).palette


def strip_of(widget: Widget, line: Line, width: int, cursor: bool = False) -> Strip:
    """A line as Textual paints it, on the widget's own background or the cursor's."""
    palette = palette_of(widget)
    ground = widget.rich_style + palette.cursor if cursor else widget.rich_style
    blank = " " * (width - width_of(line))
    segments = [Segment(text, ground + palette[role]) for text, role in run_together([*line, (blank, "text")])]
    return Strip(segments).adjust_cell_length(width, ground)


class LineView(Widget):
    """Lines from a drawing function. `show` draws anew; so do a resize and another theme."""

    can_focus = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._draw: Draw = _nothing
        self._lines: list[Line] = []
        self._drawn_from: object = None

    def show(self, draw: Draw, drawn_from: object = None) -> None:
        """`drawn_from`: everything that is drawn; while it is the same, nothing is drawn again."""
        if drawn_from is not None and drawn_from == self._drawn_from:
            return
        self._draw, self._drawn_from = draw, drawn_from
        self._redraw()

    @property
    def lines(self) -> list[Line]:
        """What is on screen now."""
        return self._lines

    @property
    def text(self) -> str:
        """The bare text of what is on screen, for tests and for copying."""
        return "\n".join(text_of(line) for line in self._lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Height for `height: auto`: as many lines as the function draws."""
        return max(1, len(self._draw(width, viewport.height)))

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else EMPTY
        return strip_of(self, line, self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self._redraw()

    def _redraw(self) -> None:
        if not self.is_mounted or self.size.width == 0:
            return
        before, self._lines = self._lines, self._draw(self.size.width, self.size.height)
        if len(before) != len(self._lines) and self.styles.auto_dimensions:
            self.refresh(layout=True)
            return
        for y in range(max(len(before), len(self._lines))):
            if y >= len(before) or y >= len(self._lines) or before[y] != self._lines[y]:
                self.refresh(Region(0, y, self.size.width, 1))


def _nothing(width: int, height: int) -> list[Line]:
    return []
