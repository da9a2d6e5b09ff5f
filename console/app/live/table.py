"""The bucket table: rows that keep their place, a cursor, and repainting of changed rows only.

Own drawing instead of DataTable: with 200 buckets changing at 4 Hz (120×36, two cores) a DataTable alone took 26 to
29 % of a core, the whole console with this 5 % (`tests/benchmarks/bench_console_cpu.py`): only the rows in view are
formatted, and of those only changed ones painted.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from console.app.drawing.cursor_view import CursorView
from console.app.drawing.line_view import strip_of
from console.app.drawing.spans import EMPTY, Line, text_of
from console.app.live import columns
from console.app.live.columns import Layout, RowFacts
from store.figures import BucketKey


class BucketTable(CursorView):
    """Rows of the bucket table; `BucketHeader` above it shares the layout."""

    class Selected(Message):
        """The cursor stands on another bucket."""

        def __init__(self, key: BucketKey | None) -> None:
            super().__init__()
            self.key = key

    class Resized(Message):
        """The table has another width: the layout of the columns with it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[RowFacts] = ()
        self._layout: Layout = []
        self._cursor: BucketKey | None = None
        self._at: int | None = None
        """Where its row is; looked up when the rows change, not with each row that is drawn."""
        self._formatted: dict[int, tuple[object, Line]] = {}
        """Of rows what was told of them, and how."""

    @property
    def cursor(self) -> BucketKey | None:
        """The selected bucket; it moves with its row."""
        return self._cursor

    @property
    def text(self) -> str:
        """The bare text of all rows, for tests and for copying."""
        return "\n".join(text_of(self._line(index)) for index in range(len(self._rows)))

    def show(self, rows: Sequence[RowFacts], layout: Layout) -> None:
        """Show these rows in this order. Of those in view, only changed ones are painted again."""
        if len(rows) != len(self._rows):
            self.virtual_size = Size(0, len(rows))
        if layout != self._layout:
            self._formatted.clear()
        self._rows, self._layout = rows, layout
        self._at = self._find(self._cursor)
        if rows and self._at is None:
            self._select(0)
        elif not rows and self._cursor is not None:
            self._cursor = None
            self.post_message(self.Selected(None))
        self._repaint()

    def select(self, key: BucketKey) -> bool:
        """Put the cursor on a bucket; False where it has no row."""
        index = self._find(key)
        if index is not None:
            self._select(index)
        return index is not None

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        line = self._line(index)
        self._painted[index] = line
        return strip_of(self, line, self.size.width, cursor=index == self._at)

    def action_move(self, step: int) -> None:
        self._select((self._index() or 0) + step)

    def on_click(self, event: events.Click) -> None:
        self._select(event.y + self.scroll_offset.y, clamp=False)

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Resized())

    def _line(self, index: int) -> Line:
        if not 0 <= index < len(self._rows):
            return EMPTY
        facts, here = self._rows[index], index == self._at
        told, line = self._formatted.get(index, (None, EMPTY))
        if told != (facts.told, here):
            line = columns.row(facts, self._layout, here)
            self._formatted[index] = (facts.told, here), line
        return line

    def _length(self) -> int:
        return len(self._rows)

    def _index(self) -> int | None:
        return self._at

    def _find(self, key: BucketKey | None) -> int | None:
        return next((index for index, facts in enumerate(self._rows) if facts.bucket.key == key), None)

    def _select(self, index: int, clamp: bool = True) -> None:
        if not self._rows or (not clamp and not 0 <= index < len(self._rows)):
            return
        index = min(max(index, 0), len(self._rows) - 1)
        key = self._rows[index].bucket.key
        if key == self._cursor:
            return
        before, self._cursor, self._at = self._at, key, index
        for changed in (before, index):
            if changed is not None:
                self.refresh_line(changed)
        self._keep_in_view(index)
        self.post_message(self.Selected(key))


class BucketHeader(Widget):
    """The row above the table; a click on a title sorts by it."""

    can_focus = False

    class SortBy(Message):
        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._layout: Layout = []
        self._line: Line = EMPTY

    def show(self, layout: Layout, sorted_by: str) -> None:
        self._layout = layout
        line = columns.header(layout, sorted_by)
        if line != self._line:
            self._line = line
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return strip_of(self, self._line, self.size.width)

    def on_click(self, event: events.Click) -> None:
        column = columns.column_at(self._layout, event.x)
        if column is not None and column.id in columns.SORTS:
            self.post_message(self.SortBy(column.id))
