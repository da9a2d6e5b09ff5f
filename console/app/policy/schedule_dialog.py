"""The schedule editor: one line of text, what it means over batch size as it is typed, and what is wrong with it."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app import actions
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import EMPTY, Line, clean, wrap
from console.app.policy.schedule_strip import strip_lines
from console.app.policy.schedule_text import EXAMPLE, parse_line
from engine.records import PolicyMode
from engine.schedule import DraftSchedule, ScheduleError, clamp

LINES: Final = 5
"""Lines of the preview, always as many, so that the dialog keeps its size while one types."""


class ScheduleDialog(ModalScreen[DraftSchedule | None]):
    """Edit a schedule. Nothing is sent from here: a schedule that can be meant goes to a `ConfirmDialog`."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("edit")

    def __init__(self, text: str, becomes: str, max_k: int, widest: int, running: int) -> None:
        """`becomes`: what the schedule is for, one sentence. `widest`: the most sequences that run at once."""
        super().__init__()
        self._written = text
        self._becomes = becomes
        self._max_k = max_k
        self._widest = widest
        self._sequences = running

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog broad"):
            yield LineView(id="schedule-what")
            yield Input(self._written, id="schedule-text", placeholder=EXAMPLE, compact=True)
            yield LineView(id="schedule-preview")

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Draft schedule", "enter next · esc cancel")
        what = f"K by number of running sequences, as {EXAMPLE}, or vLLM's JSON. {self._becomes}"
        view = self.query_one("#schedule-what", LineView)
        view.show(lambda width, height: [*(((text, "dim"),) for text in wrap(what, width)), EMPTY])
        field = self.query_one(Input)
        field.focus()
        field.cursor_position = len(self._written)
        self._preview(self._written)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._preview(event.value)

    @on(Input.Submitted)
    def action_submit(self) -> None:
        """`enter`. What can't be meant stays, with its complaint."""
        try:
            schedule = parse_line(self.query_one(Input).value, self._widest)
        except ScheduleError:
            self.app.bell()
            return
        self.dismiss(schedule)

    def action_cancel_edit(self) -> None:
        self.dismiss(None)

    def _preview(self, text: str) -> None:
        view = self.query_one("#schedule-preview", LineView)
        view.show(lambda width, height: preview_lines(text, self._max_k, self._widest, self._sequences, width))


def preview_lines(text: str, max_k: int, widest: int, running: int, width: int) -> list[Line]:
    """The strip of a schedule as it is typed, with the entries that the engine lowers; or what is wrong with it."""
    try:
        schedule = parse_line(text, widest)
    except ScheduleError as error:
        lines: list[Line] = [
            (("■ " if row == 0 else "  ", "critical"), (part, "critical"))
            for row, part in enumerate(wrap(clean(str(error)), width - 2))
        ]
        return _filled([EMPTY, *lines])
    mode = PolicyMode(mode="schedule", schedule=list(schedule))
    over = clamp(schedule, max_k).entries
    lines = [EMPTY, *strip_lines(mode, max_k, running, width)[: LINES - 2]]
    if over:
        named = ", ".join(f"{entry.first}-{entry.last}: {entry.k}" for entry in over)
        lines.append((("▲ ", "warn"), (f"clamped to K {max_k}, the engine's maximum: {named}", "warn")))
    return _filled(lines)


def _filled(lines: list[Line]) -> list[Line]:
    return [*lines, *([EMPTY] * LINES)][:LINES]
