"""What lists with a cursor share: the keys that move it, keeping its line in view, painting changed lines alone."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView

from console.app.drawing.spans import EMPTY, Line


class CursorView(ScrollView, can_focus=True):
    """Lines that scroll, one of them under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "edge(0)", "first", show=False),
        Binding("end", "edge(-1)", "last", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._painted: dict[int, Line] = {}
        """Lines as they were last painted."""

    @abstractmethod
    def _length(self) -> int:
        """Lines that the cursor can stand on."""

    @abstractmethod
    def _line(self, index: int) -> Line: ...

    @abstractmethod
    def _index(self) -> int | None:
        """Where the cursor stands."""

    @abstractmethod
    def _select(self, index: int) -> None:
        """Put the cursor on a line, or on the nearest there is."""

    def action_page(self, direction: int) -> None:
        self._select((self._index() or 0) + direction * max(1, self.size.height - 1))

    def action_edge(self, index: int) -> None:
        self._select(index if index >= 0 else self._length() - 1)

    def _keep_in_view(self, index: int) -> None:
        top = self.scroll_offset.y
        if index < top:
            self.scroll_to(y=index, animate=False)
        elif self.size.height and index >= top + self.size.height:
            self.scroll_to(y=index - self.size.height + 1, animate=False)

    def _repaint(self) -> None:
        top = self.scroll_offset.y
        for index in range(top, top + self.size.height):
            if self._painted.get(index, EMPTY) != self._line(index):
                self.refresh_line(index)
