"""The grid of the operating map with its cursor, which stays on its workload and range when the map changes."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from console.app.drawing.cursor_view import CursorView
from console.app.drawing.line_view import palette_of
from console.app.drawing.spans import EMPTY, Line, Span, text_of
from console.app.map import grid as map_grid
from console.app.map.grid import GridCell, Layout
from console.app.map.words import cell_of
from store.operating_map.records import MapCell, OperatingMap


class MapGrid(CursorView):
    """`show` gives it a map. Its header is drawn by whoever shows it, after `fitted`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "across(-1)", "left", show=False),
        Binding("right", "across(1)", "right", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another cell, or the columns moved."""

    class Resized(Message):
        """The grid has another width."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._map: OperatingMap | None = None
        self._hatched = False
        self._workload: str | None = None
        self._load: tuple[int, int] | None = None
        self._first = 0

    @property
    def selected(self) -> MapCell | None:
        """The cell under the cursor; None without a map."""
        if self._map is None or not self._map.loads:
            return None
        return cell_of(self._map, self._workload, self._map.loads[self.column])

    @property
    def column(self) -> int:
        """Where the cursor stands among the ranges of running sequences."""
        loads = self._map.loads if self._map is not None else []
        return loads.index(self._load) if self._load in loads else 0

    @property
    def text(self) -> str:
        """The bare text of all rows, for tests and for copying."""
        return "\n".join(text_of(self._line(index)) for index in range(self._length()))

    def fitted(self) -> Layout | None:
        """How the columns lie now."""
        if self._map is None:
            return None
        found = map_grid.layout(self._map, self.size.width, self.column, self._first)
        if self.size.width:
            self._first = found.first
        return found

    def show(self, map_: OperatingMap | None, stale: bool, now: int | None) -> None:
        """Show this map, `stale` ones hatched. A first cursor stands on the mix at column `now`."""
        self._map, self._hatched = map_, stale
        if map_ is not None:
            if self._load not in map_.loads:
                self._load = map_.loads[now or 0] if map_.loads else None
            if self._workload not in map_.workloads:
                self._workload = None
        if self.virtual_size.height != self._length():
            self.virtual_size = Size(0, self._length())
        self._repaint()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        self._painted[index] = self._line(index)
        palette, ground = palette_of(self), self.rich_style
        segments = [
            Segment(text, ground + under + palette[role])
            for line, under in self._pieces(index)
            for text, role in line
        ]  # fmt: skip
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def action_move(self, step: int) -> None:
        self._select((self._index() or 0) + step)

    def action_across(self, step: int) -> None:
        self._go(self._index() or 0, self.column + step)

    def on_click(self, event: events.Click) -> None:
        index, found = event.y + self.scroll_offset.y, self.fitted()
        column = None if found is None else found.column_at(event.x)
        if index < self._length():
            self._go(index, self.column if column is None else column)

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Resized())

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _length(self) -> int:
        return 0 if self._map is None else 1 + len(self._map.workloads)

    def _index(self) -> int | None:
        if self._map is None:
            return None
        return 0 if self._workload is None else 1 + self._map.workloads.index(self._workload)

    def _select(self, index: int) -> None:
        self._go(index, self.column)

    def _go(self, index: int, column: int) -> None:
        if self._map is None or not self._map.loads:
            return
        index = min(max(index, 0), self._length() - 1)
        self._workload = self._row(index)
        self._load = self._map.loads[min(max(column, 0), len(self._map.loads) - 1)]
        self._keep_in_view(index)
        self._repaint()
        self.post_message(self.Moved())

    def _row(self, index: int) -> str | None:
        assert self._map is not None
        return None if index == 0 else self._map.workloads[index - 1]

    def _line(self, index: int) -> Line:
        return tuple(span for line, _ in self._pieces(index) for span in line)

    def _pieces(self, index: int) -> list[tuple[Line, Style]]:
        """The pieces of a row, each on its own ground."""
        found = self.fitted()
        if self._map is None or found is None or not 0 <= index < self._length():
            return [(EMPTY, Style())]
        palette, workload, here = palette_of(self), self._row(index), index == self._index()
        plain = palette.heat[0]
        pieces: list[tuple[Line, Style]] = [(map_grid.row_head(workload, here, found.name), plain)]
        for column in range(found.first, found.first + found.columns):
            cell = self._cell(workload, column, found.cell - 1)
            marked = here and column == self.column
            mark: Span = ("▸" if marked else " ", "key" if self.has_focus else "dim")
            pieces += [((mark,), plain), (cell.line, palette.cursor if marked else palette.heat[cell.heat])]
        return [*pieces, (map_grid.row_tail(self._map, workload, found), plain)]

    def _cell(self, workload: str | None, column: int, width: int) -> GridCell:
        assert self._map is not None
        cell = cell_of(self._map, workload, self._map.loads[column])
        return map_grid.grid_cell(self._map, cell, width, self._hatched)
