"""Alerts of what must be wrong in two windows in a row, and right in two to be over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from store.figures import BucketKey
from store.judge.alerts import Cause, Evidence, Kind, Severity
from store.judge.book import AlertBook
from store.judge.loads import Load, Loads
from store.judge.settings import WINDOWS

_SECONDS: Final = WINDOWS[0]
_ROW: Final = 2


class Reading(NamedTuple):
    """What one window says."""

    bad: Severity | None = None
    clear: bool = False
    """Well on the right side."""
    idle: bool = False
    """There was nothing to judge."""
    evidence: Evidence | None = None


class Subject(msgspec.Struct):
    """An engine or a bucket that is judged. All counts are of windows in a row."""

    kind: Kind
    engine: str
    bucket: BucketKey | None = None
    alert: int | None = None
    since: float = 0.0
    last: float = 0.0
    """End of the last window with anything in it."""
    bad: int = 0
    critical: int = 0
    cleared: int = 0
    idle: int = 0
    healthy: Load | None = None
    """How the engine ran when all was last well."""


class Twice:
    """Args:
    causes: what changed on an engine between two moments.
    """

    def __init__(self, book: AlertBook, loads: Loads, causes: Callable[[str, float, float], list[Cause]]) -> None:
        self._book = book
        self._loads = loads
        self._causes = causes

    def window(self, subject: Subject, ts: float, reading: Reading | None) -> None:
        """A window has ended at `ts`. None: it holds too little to tell."""
        subject.last = ts
        if reading is None:
            return
        subject.idle = subject.idle + 1 if reading.idle else 0
        subject.bad = subject.bad + 1 if reading.bad else 0
        subject.critical = subject.critical + 1 if reading.bad == "critical" else 0
        subject.cleared = subject.cleared + 1 if reading.clear else 0
        if reading.bad:
            self._bad(subject, ts, reading)
        elif subject.alert is not None:
            self._better(subject, subject.alert, ts, reading)
        elif not reading.idle:
            subject.healthy = self._loads.between(subject.engine, ts - _SECONDS, ts)

    def expire(self, subject: Subject, ts: float, seconds: float) -> None:
        """End the alert of what has had no window for so long."""
        if subject.alert is not None and subject.last + seconds <= ts:
            ended = subject.last + seconds
            self._book.resolve(subject.alert, ended, Cause("gone", "nothing was seen of it for a day", ended))
            subject.alert, subject.bad, subject.critical, subject.cleared = None, 0, 0, 0

    def _bad(self, subject: Subject, ts: float, reading: Reading) -> None:
        evidence = (reading.evidence or {}) | {"window_start": ts - _SECONDS, "window_end": ts}
        severity: Severity = "critical" if subject.critical >= _ROW else "warn"
        if subject.alert is None:
            subject.since = ts
            subject.alert = self._book.open(
                kind=subject.kind, severity="warn", engine=subject.engine, bucket=subject.bucket, state="pending",
                pending_since=ts, window_seconds=_SECONDS, evidence=evidence,
            ).id  # fmt: skip
            return
        alert = self._book.get(subject.alert)
        if alert.state == "firing":
            severity = "critical" if "critical" in (severity, alert.severity) else "warn"
            self._book.change(alert.id, evidence=evidence, severity=severity)
        elif subject.bad >= _ROW:
            now = self._loads.between(subject.engine, subject.since - _SECONDS, ts)
            causes = self._loads.causes(subject.healthy, now)
            causes += self._causes(subject.engine, subject.since - 2 * _SECONDS, subject.since)
            self._book.fire(alert.id, subject.since, ts, evidence=evidence, severity=severity, causes=causes)

    def _better(self, subject: Subject, number: int, ts: float, reading: Reading) -> None:
        firing = self._book.get(number).state == "firing"
        if not firing or subject.cleared >= _ROW:
            self._book.resolve(number, ts)
        elif subject.idle >= _ROW:
            self._book.resolve(number, ts, Cause("gone", "nothing is drafted any more", ts))
        else:
            return
        subject.alert, subject.cleared = None, 0
