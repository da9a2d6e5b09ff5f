"""Alerts as commands print them and consoles read them. Loads neither numpy nor DuckDB."""

from __future__ import annotations

import msgspec

from store.figures import BucketKey
from store.judge.alerts import Alert, Cause, Evidence, Kind, Severity, State
from store.judge.sentence import sentence


class AlertReport(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as `specdeck alerts --json` prints it. Times are Unix seconds."""

    kind: Kind
    severity: Severity
    bucket: BucketKey | None
    """None for alerts of a whole engine."""
    state: State
    started: float
    """End of the first window that showed it."""
    ended: float | None
    evidence: Evidence
    causes: list[Cause]
    engine: str
    id: int
    text: str
    acknowledged: str | None
    snoozed_until: float | None


class AlertHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck alerts --json` prints."""

    alerts: list[AlertReport]


def reported(alert: Alert) -> AlertReport:
    return AlertReport(
        kind=alert.kind,
        severity=alert.severity,
        bucket=alert.bucket,
        state=alert.state,
        started=alert.pending_since if alert.started is None else alert.started,
        ended=alert.ended,
        evidence=alert.evidence,
        causes=alert.causes,
        engine=alert.engine,
        id=alert.id,
        text=sentence(alert),
        acknowledged=alert.acknowledged,
        snoozed_until=alert.snoozed_until,
    )
