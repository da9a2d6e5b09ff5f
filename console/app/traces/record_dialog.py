"""Where to record to, in which form and for how long; checked as it is typed, asked for by nobody but the desk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app import actions
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList, Row
from console.app.drawing.spans import EMPTY, Line, Role, clean, left, wrap
from console.app.traces.length import read_length
from console.feed.traces import RECORDING_ENDINGS, RecordingForm, form_of_name, name_fault

_FORM_WORDS: Final[dict[RecordingForm, str]] = {
    "zst": "JSONL, compressed: small, and zstdcat makes it readable",
    "jsonl": "JSONL: one record a line, ten times as large",
    "compact": "Parquet: small, opens fastest, any SQL reads it",
}
SAID_LINES: Final = 3
"""Of what is said about the fields, always as many, so that the dialog keeps its size while one types."""


class Wanted(NamedTuple):
    """`path`: absolute. `seconds`: None until it is ended. `there`: a file of that name is there now."""

    path: str
    seconds: float | None
    there: bool


class RecordDialog(ModalScreen[Wanted | None]):
    """Nothing is sent from here."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("record")

    def __init__(self, name: str, folder: str, here: str | None, *, again: str = "") -> None:
        """`name`: proposed. `folder`: where a bare name goes; `here`: what other relative ones count from. `again`: why
        a recording that is over could not be written; then only a place for it is asked for."""
        super().__init__()
        self._proposed = name
        self._folder = folder
        self._here = here
        self._again = again

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog broad"):
            yield LineView(id="record-what")
            yield Input(self._proposed, id="record-name", compact=True, select_on_focus=False)
            yield PickList(id="record-forms")
            yield LineView(id="record-length-what")
            yield Input(id="record-length", placeholder="until b ends it; or 30s, 10m, 2h", compact=True)
            yield LineView(id="record-said")

    def on_mount(self) -> None:
        title = "Write the recording" if self._again else "Record from now on"
        self.query_one(Panel).caption(title, "tab next field · enter next · esc cancel")
        what = (
            f"It could not be written: {self._again}"
            if self._again
            else f"into {self._folder}, or the path that is written"
        )
        self._view("record-what").show(lambda width, height: [*_dim(what, width), EMPTY])
        self.form_list.styles.height = len(RECORDING_ENDINGS)
        self._view("record-length-what").show(lambda width, height: [EMPTY, (("for how long", "dim"),)])
        for part in (self.length_field, self._view("record-length-what")):
            part.display = not self._again
        self.name_field.focus()
        self.name_field.cursor_position = len(self.name_field.value)
        self._show_forms()
        self._say()

    @property
    def name_field(self) -> Input:
        return self.query_one("#record-name", Input)

    @property
    def length_field(self) -> Input:
        return self.query_one("#record-length", Input)

    @property
    def form_list(self) -> PickList:
        return self.query_one(PickList)

    # Fields

    @on(Input.Changed)
    def _typing(self) -> None:
        form = form_of_name(self.name_field.value.strip())
        if form is not None and not self.form_list.has_focus:
            self.form_list.select(form)
        self._show_forms()
        self._say()

    @on(PickList.Moved)
    def _form_chosen(self) -> None:
        """The marked form is the name's ending."""
        form = self.form_list.cursor
        if self.form_list.has_focus and form is not None:
            self.name_field.value = _with_ending(self.name_field.value.strip(), RECORDING_ENDINGS[form])  # type: ignore[index]
        self._show_forms()

    @on(PickList.Resized)
    def _show_forms(self) -> None:
        rows: list[Row] = [
            (form, ((left(f" {ending}", 12), "text"), (_FORM_WORDS[form], "dim")))
            for form, ending in RECORDING_ENDINGS.items()
        ]
        self.form_list.show(rows, lambda width: [EMPTY])

    @on(PickList.Left)
    def _past_the_forms(self, event: PickList.Left) -> None:
        (self.length_field if event.step > 0 and not self._again else self.name_field).focus()

    def action_other_record_field(self) -> None:
        fields = [self.name_field, self.form_list, *([] if self._again else [self.length_field])]
        index = next((index for index, field in enumerate(fields) if field.has_focus), -1)
        fields[(index + 1) % len(fields)].focus()

    @on(Input.Submitted)
    def action_start_recording(self) -> None:
        """`enter`. What can't be meant stays, with its complaint."""
        try:
            wanted = self._wanted()
        except ValueError:
            self._say()
            self.app.bell()
        else:
            self.dismiss(wanted)

    def action_cancel_recording(self) -> None:
        self.dismiss(None)

    def _wanted(self) -> Wanted:
        """Raises ValueError: what is wrong, and what would be right."""
        path = resolved(self.name_field.value, self._folder, self._here)
        if (fault := name_fault(str(path))) is not None:
            raise ValueError(fault)
        if os.path.isdir(path):  # pathlib's raises below a folder that may not be looked into
            raise ValueError(f"{path} is a folder: name a file in it")
        if path.parent != Path(self._folder) and not os.path.isdir(path.parent):
            raise ValueError(f"there is no folder {path.parent}")
        return Wanted(str(path), read_length(self.length_field.value), os.path.exists(path))

    def _say(self) -> None:
        try:
            wanted = self._wanted()
        except ValueError as error:
            self._show_said(f"■ {error}", "critical")
        else:
            there = "is there already: asks before it is replaced · " if wanted.there else ""
            self._show_said(f"{there}→ {wanted.path}", "warn" if there else "dim")

    def _show_said(self, text: str, role: Role) -> None:
        def lines(width: int, height: int) -> list[Line]:
            said: list[Line] = [((part, role),) for part in wrap(clean(text), width)]
            return [EMPTY, *(said + [EMPTY] * SAID_LINES)[:SAID_LINES]]

        self._view("record-said").show(lines)

    def _view(self, id: str) -> LineView:
        return self.query_one(f"#{id}", LineView)


def resolved(text: str, folder: str, here: str | None) -> Path:
    """The absolute path that is meant: a bare name lies in `folder`, another relative one counts from `here`.

    Raises:
        ValueError: nothing is written, or nobody of that name has a home here.
    """
    name = text.strip()
    if not name:
        raise ValueError("write a name")
    if "/" not in name and name != "~":
        return Path(folder) / name
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    return path if path.is_absolute() else Path(here or folder) / path


def _with_ending(name: str, ending: str) -> str:
    """A name with another form's ending; one without any gets it."""
    form = form_of_name(name)
    stem = name.removesuffix(RECORDING_ENDINGS[form]) if form is not None else name
    return stem + ending


def _dim(text: str, width: int) -> list[Line]:
    return [((part, "dim"),) for part in wrap(clean(text), width)]
