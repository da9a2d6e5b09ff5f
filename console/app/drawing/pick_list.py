"""A list of lines with a cursor that stays on its line when others come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from console.app.drawing.cursor_view import CursorView
from console.app.drawing.line_view import strip_of
from console.app.drawing.spans import EMPTY, Line, text_of

Row = tuple[str, Line]
"""A key and the line without its cursor."""


class PickList(CursorView):
    """`show` gives it rows. Past its last or first line the cursor leaves it (`Left`)."""

    class Moved(Message):
        """The cursor stands elsewhere, or the list has or lost the focus."""

    class Left(Message):
        """The cursor went past the edge: `step` is 1 below the last line, -1 above the first."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Resized(Message):
        """The lines have another width."""

    def __init__(self, *, id: str | None = None, forget: bool = False) -> None:
        """`forget`: without the focus the cursor goes back to the first line, which is the newest."""
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()
        self._empty: Callable[[int], list[Line]] = lambda width: []
        self._cursor: str | None = None
        self._at: int | None = None
        """Where its row is; looked up when the rows change, not with each row that is drawn."""
        self._forget = forget

    @property
    def cursor(self) -> str | None:
        """Key of the line that the cursor is on."""
        return self._cursor

    @property
    def text(self) -> str:
        """The bare text of all lines, for tests and for copying."""
        return "\n".join(text_of(self._line(index)) for index in range(self._count()))

    def show(self, rows: Sequence[Row], empty: Callable[[int], list[Line]]) -> None:
        """Show these rows in this order, or what `empty` says of a width. Only changed lines are painted again."""
        self._rows, self._empty = rows, empty
        if self.virtual_size.height != self._count():
            self.virtual_size = Size(0, self._count())
        self._at = self._find(self._cursor)
        if rows and (self._at is None or (self._forget and not self.has_focus)):
            self._at, self._cursor = 0, rows[0][0]
        elif not rows:
            self._cursor = None
        self._repaint()

    def select(self, key: str) -> bool:
        """Put the cursor on a line; False where it is not there."""
        index = self._find(key)
        if index is not None:
            self._select(index)
        return index is not None

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        line = self._line(index)
        self._painted[index] = line
        here = self.has_focus and bool(self._rows) and index == self._at
        return strip_of(self, line, self.size.width, cursor=here)

    def action_move(self, step: int) -> None:
        index = (self._index() or 0) + step
        if 0 <= index < len(self._rows):
            self._select(index)
        else:
            self.post_message(self.Left(step))

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if index < len(self._rows):
            self._select(index)

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Resized())

    def on_focus(self) -> None:
        self._told()

    def on_blur(self) -> None:
        self._told()

    def _told(self) -> None:
        self.refresh()
        self.post_message(self.Moved())

    def _count(self) -> int:
        return len(self._rows) or len(self._empty(self.size.width))

    def _line(self, index: int) -> Line:
        if not self._rows:
            lines = self._empty(self.size.width)
            return lines[index] if 0 <= index < len(lines) else EMPTY
        if not 0 <= index < len(self._rows):
            return EMPTY
        here, line = index == self._at, self._rows[index][1]
        return (("▸" if here else " ", "key" if self.has_focus else "faint"), *line)

    def _length(self) -> int:
        return len(self._rows)

    def _index(self) -> int | None:
        return self._at

    def _find(self, key: str | None) -> int | None:
        return next((index for index, (known, _) in enumerate(self._rows) if known == key), None)

    def _select(self, index: int) -> None:
        if not self._rows:
            return
        index = min(max(index, 0), len(self._rows) - 1)
        self._at, self._cursor = index, self._rows[index][0]
        self._keep_in_view(index)
        self._told()
