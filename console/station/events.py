"""The recent past in lines, and the alerts that are plain facts: engine, gateway, recording, losses, mismatch.

The judge with its statistics is another matter; what is here needs no threshold to be argued about.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from console.feed.messages import AlertView, Event

log = logging.getLogger(__name__)

EVENTS_KEPT: Final = 200
RESOLVED_SHOWN_SECONDS: Final = 60.0

Severity = Literal["info", "warn", "critical"]


class Condition(NamedTuple):
    """Something that is wrong now. One alert per `cause`, however long it lasts."""

    cause: str
    kind: str
    severity: Severity
    text: str


class EventLog:
    """Newest last. `station` shows it, the series marks charts with it."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._lock = threading.Lock()  # the recorder's thread adds too

    def add(self, ts: float, kind: str, text: str) -> None:
        with self._lock:
            self._events.append(Event(ts, kind, text))

    def tell(self, kind: str, text: str) -> None:
        """Something happened now: to the screen and to the log."""
        log.info("%s: %s", kind, text)
        self.add(time.time(), kind, text)

    def since(self, ts: float = 0.0) -> list[Event]:
        with self._lock:
            return [event for event in self._events if event.ts >= ts]


class AlertBoard:
    """Turns what is wrong now into alerts with a beginning and an end."""

    def __init__(self) -> None:
        self._firing: dict[str, AlertView] = {}
        self._resolved: deque[AlertView] = deque(maxlen=20)

    def update(self, conditions: Iterable[Condition], now: float) -> list[AlertView]:
        """All alerts to show: firing ones first, then those resolved within the last minute."""
        present = {condition.cause: condition for condition in conditions}
        for cause, condition in present.items():
            since = self._firing[cause].started if cause in self._firing else now
            self._firing[cause] = AlertView(
                kind=condition.kind, severity=condition.severity, state="firing", text=condition.text, started=since,
                cause=cause,
            )  # fmt: skip
        for cause in [cause for cause in self._firing if cause not in present]:
            over = self._firing.pop(cause)
            self._resolved.append(
                AlertView(
                    kind=over.kind,
                    severity=over.severity,
                    state="resolved",
                    text=over.text,
                    started=over.started,
                    ended=now,
                    cause=cause,
                )
            )
        recent = [alert for alert in self._resolved if now - (alert.ended or now) <= RESOLVED_SHOWN_SECONDS]
        return [*self._firing.values(), *recent]


class RisingCount:
    """A counter whose rises are news for a while: losses are told when they happen, not for ever after."""

    def __init__(self, news_seconds: float = 60.0) -> None:
        self._news_seconds = news_seconds
        self._seen: int | None = None
        self._base = 0
        self._risen_at: float | None = None

    def update(self, count: int, now: float) -> int:
        """How much it rose in the present piece of news, 0 when that is over."""
        if self._seen is None:
            self._seen = self._base = count
        if count > self._seen:
            if self._risen_at is None:
                self._base = self._seen
            self._risen_at = now
            self._seen = count
        if self._risen_at is not None and now - self._risen_at > self._news_seconds:
            self._risen_at = None
        return self._seen - self._base if self._risen_at is not None else 0
