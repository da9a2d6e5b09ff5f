"""Screen 4: what is wrong, what may be, and what was; each with what speaks for it and what would settle it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from console.app import actions
from console.app.actions import Action, Context
from console.app.alerts.desk import AlertDesk
from console.app.alerts.lines import AlertLine, alert_detail, alert_lines, alert_row, counted
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import Line, paragraph, text_of
from console.app.frame.awaited import awaited
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.frame.inquiry import Inquiry
from console.app.picture import Picture
from console.feed.client import FeedError
from console.feed.messages import AlertView
from console.feed.protocol import AlertsParams
from store.judge.reports import AlertHistory, AlertReport

if TYPE_CHECKING:
    from console.app.explaining.section import Section

LOOK_INTERVAL: Final = 1.0
HISTORY_INTERVAL: Final = 10.0
"""Seconds of the shown time: the judge looks as often. A change of what fires is looked up at once."""

HISTORY_SECONDS: Final = 7 * 86_400.0

COPIED_WIDTH: Final = 400

NOTHING: Final = (
    "No alert in the last 7 days. One comes here when acceptance drops below a bucket's baseline, when speculation "
    "costs more than it brings, or when something is down."
)
NOTHING_HERE: Final = "No alert up to this moment of the record. n goes to the next one, if there is one."


Actions = list[Action]


class AlertsScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "alerts"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("alerts")

    def __init__(self) -> None:
        super().__init__()
        self._history: list[AlertReport] = []
        self._lines: list[AlertLine] = []
        self._error = ""
        self._inquiry = Inquiry(HISTORY_INTERVAL)
        self.has_history = False
        """The station has answered with its history, or refused to."""

    def body(self) -> ComposeResult:
        with Panel(id="alert-list-panel"):
            yield PickList(id="alert-list")
        yield LineView(id="alert-detail")

    @property
    def list(self) -> PickList:
        return self.query_one("#alert-list", PickList)

    @property
    def selected(self) -> AlertLine | None:
        return next((line for line in self._lines if line.key == self.list.cursor), None)

    def copied(self) -> str | None:
        """The marked alert with all that is known of it."""
        line = self.selected
        if line is None:
            return None
        view = line.view
        head = f"{view.severity}, {view.state}, since {numbers.day(view.started)} {numbers.clock(view.started)}"
        detail = [text_of(one).rstrip() for one in alert_detail(line, self.deck.picture.moment, COPIED_WIDTH)]
        return "\n".join([head, *detail])

    def on_mount(self) -> None:
        self.list.focus()
        self.set_interval(LOOK_INTERVAL, self._want_history)
        self._want_history()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._want_history()

    def draw(self, picture: Picture) -> None:
        self._lines = alert_lines(self._history, picture.snapshot.alerts if picture.snapshot is not None else [])
        width = self.list.size.width - 1
        rows = [(line.key, alert_row(line, picture.moment, width)) for line in self._lines]
        nothing = self._error or self._nothing(picture)
        self.list.show(rows, lambda width: paragraph(nothing, width, margin="  "))
        title = f"alerts · {counted(self._lines)}" if self._lines else "alerts"
        self.query_one("#alert-list-panel", Panel).caption(title, self._error if self._lines else "")
        self._draw_detail()

    def _nothing(self, picture: Picture) -> str:
        if picture.snapshot is None or not self.has_history:
            return awaited("Alerts show", picture)
        return NOTHING_HERE if picture.replaying else NOTHING

    def shown_actions(self) -> Actions:
        """Without an alert there is nothing that its keys could be about."""
        shown = super().shown_actions()
        return shown if self._lines else [action for action in shown if action.context != self.CONTEXT]

    def _draw_detail(self) -> None:
        line, moment = self.selected, self.deck.picture.moment

        def detail(width: int, height: int) -> list[Line]:
            if line is None:
                return []
            lines = alert_detail(line, moment, width - 2)
            return [((" ", "text"), *one) for one in lines[:height]]

        self._view("alert-detail").show(detail)

    # The history

    def _want_history(self) -> None:
        picture = self.deck.picture
        shown = _known(picture.snapshot.alerts) if picture.snapshot is not None else []
        if self.is_current and self._inquiry.begin(picture, shown):
            self._fetch_history()

    @work(exclusive=True, group="alerts", exit_on_error=False)
    async def _fetch_history(self) -> None:
        try:
            params = AlertsParams(window=HISTORY_SECONDS)
            found = await self.deck.feed.request("alerts", params, AlertHistory, 4.0)
        except FeedError as error:
            self._error = f"The history can't be read: {error.message}"
        else:
            self._history, self._error = found.alerts, ""
        finally:
            self._inquiry.end()
        self.has_history = True
        self.draw(self.deck.picture)

    # Cursor

    @on(PickList.Moved)
    def _moved(self) -> None:
        self._draw_detail()

    @on(PickList.Resized)
    def _resized(self) -> None:
        self.show(self.deck.picture)

    def explained(self) -> Sequence[Section]:
        from console.app.explaining.alert import alert_sections
        from console.app.explaining.record import Record

        line, snapshot = self.selected, self.deck.picture.snapshot
        return [] if line is None or snapshot is None else alert_sections(line, Record.of(snapshot))

    # Actions

    @guarded
    def action_acknowledge(self) -> None:
        if (line := self._marked()) is not None:
            AlertDesk(self.deck).acknowledge(line.view)

    @guarded
    def action_snooze(self) -> None:
        if (line := self._marked()) is not None:
            AlertDesk(self.deck).snooze(line.view)

    @guarded
    def action_accept(self) -> None:
        if (line := self._marked()) is not None:
            AlertDesk(self.deck).accept(line.view)

    @guarded
    def action_go_to_alert(self) -> None:
        """To the bucket that the alert is about, at its moment: there a replay goes itself."""
        line = self._marked()
        if line is not None:
            self.deck.go_to_moment(line.bucket, line.view.started)

    def _marked(self) -> AlertLine | None:
        """The alert that a key is about; where there is none the operator is told."""
        line = self.selected
        if line is None:
            self.deck.tell("There is no alert here.", severity="warning")
        return line


def _known(alerts: list[AlertView]) -> list[tuple[object, ...]]:
    """What of the alerts of a snapshot, were it another, would be worth a look at the history."""
    return [(view.id, view.kind, view.state, view.acknowledged, view.snoozed_until) for view in alerts]
