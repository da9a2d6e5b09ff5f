"""What is new about the alerts from one picture to the next: begun, graver, over. Pure; one notice for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from console.feed.messages import AlertView

Severity = Literal["info", "warn", "critical"]
What = Literal["fires", "graver", "over", "passed", "done"]
"""`passed`: it began and was over before it could be told. `done`: no alert, but something that somebody did."""

RANKS: Final[dict[Severity, int]] = {"info": 0, "warn": 1, "critical": 2}


class Notice(NamedTuple):
    """One thing to tell. `text`: a sentence as the station has it, not yet made safe to print."""

    what: What
    severity: Severity
    text: str
    alert: AlertView | None = None

    @property
    def rank(self) -> int:
        """How grave it is; an end, and what others did, come after everything else."""
        return -1 if self.what in ("over", "done") else RANKS[self.severity]


Identity = tuple[object, ...]


def identity(alert: AlertView) -> Identity:
    """What tells an alert from every other for as long as it lasts. One of the judge may become another kind."""
    if alert.id is not None:
        return (alert.id,)
    return alert.kind, alert.cause or alert.text, alert.started


def is_quiet(alert: AlertView, now: float) -> bool:
    """The operator knows of it, or wants to hear of it later. `now`: Unix seconds."""
    return alert.acknowledged is not None or (alert.snoozed_until is not None and alert.snoozed_until > now)


class AlertWatch:
    """What was told of each alert. One that sleeps is forgotten: if it still fires when it wakes it is told anew."""

    def __init__(self) -> None:
        self._told: dict[Identity, AlertView] = {}
        """As it stood when it was gravest."""

    def see(self, alerts: Sequence[AlertView], now: float) -> list[Notice]:
        """Take in all alerts of a picture; what is to be told about them, in their order.

        Args:
            now: Unix seconds of the picture.
        """
        firing = {identity(alert): alert for alert in alerts if alert.state == "firing"}
        loud = {key: alert for key, alert in firing.items() if not is_quiet(alert, now)}
        ended = {identity(alert): alert for alert in alerts if alert.state == "resolved"}
        notices = []
        for key, told in list(self._told.items()):
            if key in firing:
                if key not in loud:
                    del self._told[key]
                continue
            del self._told[key]
            last = ended.get(key) or replace(told, state="resolved", ended=now)
            notices.append(Notice("over", told.severity, last.text, last))
        for key, alert in loud.items():
            told_before = self._told.get(key)
            if told_before is None or RANKS[alert.severity] > RANKS[told_before.severity]:
                self._told[key] = alert
                notices.append(Notice("fires" if told_before is None else "graver", alert.severity, alert.text, alert))
        return notices
