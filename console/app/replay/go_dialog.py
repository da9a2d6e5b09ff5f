"""Where to go in a replay: one line, and what it means as it is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app import actions
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import EMPTY, Line, Span, wrap
from console.app.replay.moment import UNDERSTOOD, MomentError, read_moment, resolve, span_text
from console.feed.messages import ReplayView

LINES = 3
"""Of what is said about the text, always as many, so that the dialog keeps its size while one types."""


class GoDialog(ModalScreen[float | None]):
    """Gives the moment in Unix seconds, None where nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("go")

    def __init__(self, view: ReplayView, now: float) -> None:
        """`now`: where the replay stands."""
        super().__init__()
        self._view = view
        self._now = now

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="go-what")
            yield Input(id="go-text", placeholder="14:05", compact=True)
            yield LineView(id="go-meaning")

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Go to", "enter go · esc cancel")
        self.query_one("#go-what", LineView).show(self._what)
        self.query_one(Input).focus()
        self._say("")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._say(event.value)

    @on(Input.Submitted)
    def action_go_there(self) -> None:
        """`enter`. What means no moment stays, with its complaint."""
        try:
            ts = self._moment(self.query_one(Input).value)
        except MomentError:
            self.app.bell()
            return
        self.dismiss(ts)

    def action_cancel_go(self) -> None:
        self.dismiss(None)

    def _moment(self, text: str) -> float:
        return resolve(read_moment(text), self._view.start, self._view.end, self._now)

    def _what(self, width: int, height: int) -> list[Line]:
        read = "trace  " if self._view.complete else "read   "
        return [
            ((read, "dim"), (span_text(self._view.start, self._view.end), "text")),
            (("now    ", "dim"), (numbers.clock(self._now), "bright")),
            EMPTY,
        ]

    def _say(self, text: str) -> None:
        self.query_one("#go-meaning", LineView).show(lambda width, height: self._meaning(text, width))

    def _meaning(self, text: str, width: int) -> list[Line]:
        lines: list[Line] = [EMPTY]
        if not text.strip():
            lines += [((part, "dim"),) for part in wrap(UNDERSTOOD.replace(", ", " · "), width)]
        else:
            try:
                ts = self._moment(text)
            except MomentError as error:
                lines += [
                    (("■ " if row == 0 else "  ", "critical"), (part, "critical"))
                    for row, part in enumerate(wrap(str(error), width - 2))
                ]
            else:
                lines.append((("→ ", "dim"), (f"{numbers.day(ts)} {numbers.clock(ts)}", "bright"), self._away(ts)))
        return [*lines, *([EMPTY] * (1 + LINES))][: 1 + LINES]

    def _away(self, ts: float) -> Span:
        seconds = ts - self._now
        if abs(seconds) < 0.05:
            return ("  here", "dim")
        return (f"  {numbers.duration(abs(seconds))} {'on' if seconds > 0 else 'back'}", "dim")
