"""The alerts that there are, and what changed of them since somebody last asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from store.judge.alerts import Alert, Cause, Changes, Note


class UnknownAlert(LookupError):
    """There is no such alert, or it was resolved so long ago that only the store remembers it."""


class BookMemory(msgspec.Struct):
    alerts: dict[int, Alert] = {}
    next_id: int = 1
    changed: list[int] = []
    notes: list[Note] = []


class AlertBook:
    """Args:
    memory: changed in place.
    kept_resolved: so many resolved alerts are remembered.
    """

    def __init__(self, memory: BookMemory, kept_resolved: int) -> None:
        self.memory = memory
        self._kept = kept_resolved

    def get(self, number: int) -> Alert:
        """
        Raises:
            UnknownAlert: names it.
        """
        try:
            return self.memory.alerts[number]
        except KeyError:
            raise UnknownAlert(f"no alert {number} is pending, firing or lately resolved") from None

    def active(self) -> Iterator[Alert]:
        return (alert for alert in self.memory.alerts.values() if alert.active)

    def open(self, **fields: Any) -> Alert:
        """A new alert with the next number."""
        alert = Alert(id=self.memory.next_id, **fields)
        self.memory.next_id += 1
        return self._keep(alert)

    def change(self, number: int, **fields: Any) -> Alert:
        """Replace fields of an alert; nothing happens where they are as they were."""
        alert = self.get(number)
        changed = msgspec.structs.replace(alert, **fields)
        return alert if changed == alert else self._keep(changed)

    def fire(self, number: int, started: float, confirmed: float, **fields: Any) -> Alert:
        return self.change(number, state="firing", started=started, confirmed=confirmed, **fields)

    def resolve(self, number: int, ended: float, cause: Cause | None = None) -> Alert:
        alert = self.get(number)
        causes = alert.causes if cause is None else [*alert.causes, cause]
        return self.change(number, state="resolved", ended=ended, causes=causes)

    def append_causes(self, number: int, causes: list[Cause]) -> Alert:
        """Name more causes; one that is named already, at the same time, is not named again."""
        alert = self.get(number)
        known = {(cause.kind, cause.ts) for cause in alert.causes}
        new = [cause for cause in causes if (cause.kind, cause.ts) not in known]
        return self.change(number, causes=[*alert.causes, *new])

    def note(self, note: Note) -> None:
        self.memory.notes.append(note)

    def changes(self) -> Changes:
        """What is new since the last call."""
        memory = self.memory
        alerts = [memory.alerts[number] for number in sorted(memory.changed)]
        changes = Changes(alerts, memory.notes)
        memory.changed, memory.notes = [], []
        self._forget()
        return changes

    def _keep(self, alert: Alert) -> Alert:
        self.memory.alerts[alert.id] = alert
        if alert.id not in self.memory.changed:
            self.memory.changed.append(alert.id)
        return alert

    def _forget(self) -> None:
        resolved = [alert.id for alert in self.memory.alerts.values() if not alert.active]
        for number in resolved[: max(0, len(resolved) - self._kept)]:
            del self.memory.alerts[number]
