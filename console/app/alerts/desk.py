"""What the keys of the Alerts screen do: tell the station about an alert, and say how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from console.app.drawing import numbers
from console.app.drawing.spans import clean
from console.app.frame.change import Change
from console.feed.client import FeedError
from console.feed.messages import AlertView
from console.feed.protocol import AlertAct
from store.judge.alerts import ACCEPTANCE
from store.judge.reports import AlertReport

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

SNOOZE_SECONDS: Final = 3600.0
ANSWER_SECONDS: Final = 10.0

_DONE: Final = {
    "acknowledge": "alert {} is acknowledged",
    "snooze": "alert {} sleeps for an hour: it goes on, and nobody is told",
    "accept": "the level of alert {} is accepted: later falls are held against it",
}


class AlertDesk:
    """The methods assume what their actions need: a station that answers and may be told."""

    def __init__(self, app: SpecdeckApp) -> None:
        self._app = app

    def acknowledge(self, view: AlertView) -> None:
        self._tell(view, "acknowledge")

    def snooze(self, view: AlertView) -> None:
        self._tell(view, "snooze")

    def accept(self, view: AlertView) -> None:
        """Asks first: what is compared from then on is another level, and there is no way back."""
        from console.app.frame.dialogs import ConfirmDialog

        if view.kind not in ACCEPTANCE:
            self._app.tell("Only the level of an acceptance alert can be accepted.", severity="warning")
            return
        change = Change(
            "Accept the new level", "held against the level that it had", "held against the level that it has now",
            [clean(view.text), "The alert ends. Later falls count from here."],
            "none: the next full week of this model version pins a level of its own",
        )  # fmt: skip

        def answered(yes: bool | None) -> None:
            if yes:
                self._tell(view, "accept")

        self._app.push_screen(ConfirmDialog(change), answered)

    def _tell(self, view: AlertView, act: Literal["acknowledge", "snooze", "accept"]) -> None:
        if view.id is None:
            why = "This is a plain fact, no judgement: it goes when it is over."
            self._app.tell(why, severity="warning")
            return
        if view.state == "resolved":
            self._app.tell(f"It was over on {numbers.day(view.ended or view.started)}.", severity="warning")
            return
        self._app.run_worker(self._told(view.id, act), exit_on_error=False)

    async def _told(self, number: int, act: Literal["acknowledge", "snooze", "accept"]) -> None:
        try:
            params = AlertAct(id=number, act=act, seconds=SNOOZE_SECONDS)
            await self._app.feed.request("alert_act", params, AlertReport, ANSWER_SECONDS)
        except FeedError as error:
            self._app.tell(error.message, severity="warning")
        else:
            self._app.tell(_DONE[act].format(number))
