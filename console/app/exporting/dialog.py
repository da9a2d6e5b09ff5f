"""Where an export goes, in what form and since when: a path, and a list of ranges."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app import actions
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import EMPTY, Line, Role, clean, wrap
from console.app.exporting.choice import FORMS, Choice, ChoiceError, Range, choose, form_of

SAID_LINES = 4
"""Always as many, so that the dialog keeps its size while one types."""


class ExportDialog(ModalScreen[Choice | None]):
    """Nothing is written from here: the choice goes to whoever asked."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("export")

    def __init__(self, path: Path, ranges: Sequence[Range], folder: Path, now: float, taken: Collection[str]) -> None:
        """`path`: what is proposed. `folder`, `now`, `taken`: as in `choose`."""
        super().__init__()
        self._path = path
        self._ranges = ranges
        self._folder = folder
        self._now = now
        self._taken = taken

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog broad"):
            yield LineView(id="export-what")
            yield Input(str(self._path), id="export-path", compact=True)
            yield PickList(id="export-ranges")
            yield LineView(id="export-said")

    def on_mount(self) -> None:
        keys = "tab what range · " if len(self._ranges) > 1 else ""
        self.query_one(Panel).caption("Export", f"{keys}enter export · esc cancel")
        what = f"The ending says the form: {' '.join(FORMS)}, or none for a folder of Parquet files."
        view = self.query_one("#export-what", LineView)
        view.show(lambda width, height: [*(((part, "dim"),) for part in wrap(what, width)), EMPTY])
        self._list.styles.height = len(self._ranges)
        self._draw()
        self._field.focus()
        self._field.action_end()
        self._say()

    @property
    def _list(self) -> PickList:
        return self.query_one(PickList)

    @property
    def _field(self) -> Input:
        return self.query_one(Input)

    def _chosen(self) -> Choice:
        wanted = next((one for one in self._ranges if one.name == self._list.cursor), self._ranges[0])
        return choose(self._field.value, self._folder, wanted, self._now, self._taken)

    @on(PickList.Resized)
    def _draw(self) -> None:
        rows: list[tuple[str, Line]] = [(one.name, ((f" {clean(one.name)}", "text"),)) for one in self._ranges]
        self._list.show(rows, lambda width: [EMPTY])

    @on(PickList.Moved)
    @on(Input.Changed)
    def _say(self) -> None:
        try:
            choice = self._chosen()
        except ChoiceError as error:
            self._show(f"■ {error}", "critical")
        else:
            told = f"{choice.range.name} → {choice.path} ({form_of(choice.path.name)})"
            # First, since the end of a long path may not fit.
            there = "It is there already: enter asks before it is replaced. " if choice.replaces else ""
            self._show(f"{there}{told[0].upper()}{told[1:]}", "text")

    @on(PickList.Left)
    def _past_the_list(self, event: PickList.Left) -> None:
        if event.step < 0:
            self._field.focus()

    def action_other_export_field(self) -> None:
        (self._list if self._field.has_focus else self._field).focus()

    @on(Input.Submitted)
    def action_export_there(self) -> None:
        """`enter`. What can't be written stays, with its complaint."""
        try:
            self.dismiss(self._chosen())
        except ChoiceError:
            self.app.bell()

    def action_cancel_export(self) -> None:
        self.dismiss(None)

    def _show(self, text: str, role: Role) -> None:
        def lines(width: int, height: int) -> list[Line]:
            said: list[Line] = [((part, role),) for part in wrap(clean(text), width)]
            return [EMPTY, *said, *([EMPTY] * SAID_LINES)][: 1 + SAID_LINES]

        self.query_one("#export-said", LineView).show(lines)
