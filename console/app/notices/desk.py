"""Tells the operator what is new: an alert that begins, gets graver or is over, and what another console did.

Each channel has a limit of its own, and what it held back goes with its next message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.notifications import SeverityLevel

from console.app.notices.replayed import Passing
from console.feed.messages import ActView, Snapshot
from console.notices.limiter import Limiter, Message
from console.notices.settings import NotifySettings, wanted
from console.notices.watch import AlertWatch, Notice
from console.notices.words import lines, one_line

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

_SEVERITIES: Final[dict[int, SeverityLevel]] = {2: "error", 1: "warning"}
"""By the rank of the gravest that is told."""

NOT_UNDONE: Final = frozenset({"confirm", "confirm_by", "undo", "revert"})
"""Changes of the policy after whose note `u` is not offered."""


class NoticeDesk:
    """`see` takes every snapshot, `tick` lets time pass; both may tell something."""

    def __init__(self, app: SpecdeckApp, settings: NotifySettings, actor: str) -> None:
        """`actor`: the name under which this console acts; what is done under it is no news here."""
        self._app = app
        self._settings = settings
        self._actor = actor
        self._watch = AlertWatch()
        self._passing = Passing()
        self._first = True
        self._known: set[tuple[object, ...]] = set()
        """Acts of the last snapshot."""
        self._notes = Limiter(settings.a_minute)
        self._bells = Limiter(settings.a_minute)
        self._desktop = Limiter(settings.a_minute)

    def see(self, snapshot: Snapshot) -> None:
        first, self._first = self._first, False
        notices = self._watch.see(snapshot.alerts, snapshot.ts)
        acts = self._acts(snapshot, first)
        if snapshot.replay is not None:
            self._note(notices if self._passing.passed(snapshot) else [])
        else:
            self._note([*notices, *acts])
            if not first:  # whoever has just opened a console looks at it
                self._call(notices)
        self.tick()

    def tick(self) -> None:
        """Tell what is due."""
        now = self._app.clock()
        if (message := self._notes.due(now)) is not None:
            self._show(message)
        if self._bells.due(now) is not None:
            self._app.bell()
        if (message := self._desktop.due(now)) is not None:
            self._app.desktop_notification(one_line(message), self._settings.desktop_form)

    def _note(self, notices: list[Notice]) -> None:
        level = self._settings.note
        self._notes.add(
            (one for one in notices if one.what == "done" or wanted(level, one.severity)), self._app.clock()
        )

    def _call(self, notices: list[Notice]) -> None:
        """Where nobody may be looking."""
        now, settings = self._app.clock(), self._settings
        self._bells.add((one for one in notices if one.what != "over" and wanted(settings.bell, one.severity)), now)
        self._desktop.add((one for one in notices if wanted(settings.desktop, one.severity)), now)

    def _show(self, message: Message) -> None:
        severity = _SEVERITIES.get(message.notices[0].rank, "information")
        self._app.tell("\n".join(lines(message)), severity=severity)

    def _acts(self, snapshot: Snapshot, first: bool) -> list[Notice]:
        """What others did since the last snapshot."""
        before, self._known = self._known, {_key(act) for act in snapshot.acts}
        if first or not self._settings.others:
            return []
        return [self._done(act) for act in snapshot.acts if _key(act) not in before and act.actor != self._actor]

    def _done(self, act: ActView) -> Notice:
        undoes = act.policy is not None and act.action not in NOT_UNDONE and not self._app.picture.read_only
        return Notice("done", "info", f"{act.text}{'   (u undoes it)' if undoes else ''}")


def _key(act: ActView) -> tuple[object, ...]:
    return act.ts, act.actor, act.action, act.workload, act.policy
