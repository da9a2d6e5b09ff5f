"""With what one bucket is to be compared: a short list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from console.app import actions
from console.app.compare.questions import Question
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import EMPTY, Line, wrap
from console.app.live.columns import bucket_name


class CompareDialog(ModalScreen[Question | None]):
    """Gives what was chosen, None where nothing was."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("compare")

    def __init__(self, questions: Sequence[Question]) -> None:
        """`questions`: at least one, all about one bucket."""
        super().__init__()
        self._questions = questions

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="compare-what")
            yield PickList(id="compare-with")

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Compare with…", "↑ ↓ choose · enter compare · esc cancel")
        self.query_one("#compare-what", LineView).show(self._what)
        self._list.styles.height = len(self._questions)
        self._draw()
        self._list.focus()

    @property
    def _list(self) -> PickList:
        return self.query_one(PickList)

    @on(PickList.Moved)
    @on(PickList.Resized)
    def _draw(self) -> None:
        rows: list[tuple[str, Line]] = [(str(n), ((f" {one.what}", "text"),)) for n, one in enumerate(self._questions)]
        self._list.show(rows, lambda width: [EMPTY])

    def _what(self, width: int, height: int) -> list[Line]:
        half = self._questions[0].b
        lines: list[Line] = [
            ((part, "bright"),) for part in wrap(f"{bucket_name(half.key)}, {half.words}, with", width)
        ]
        lines += [((part, "dim"),) for part in wrap("Another bucket: esc, mark this one with =, go there, =.", width)]
        return [*lines, EMPTY]

    def action_compare_these(self) -> None:
        if self._list.cursor is not None:
            self.dismiss(self._questions[int(self._list.cursor)])

    def action_leave_compare(self) -> None:
        self.dismiss(None)
