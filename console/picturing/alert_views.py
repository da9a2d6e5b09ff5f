"""Alerts of the judge as the screen shows them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from console.feed.messages import AlertView
from store.judge.alerts import Alert
from store.judge.sentence import sentence

FROM_THE_JUDGE: Final = frozenset({"drift", "shift", "speedup_floor", "failing_workload", "map_stale"})
"""Alerts of the judge that a station's screen shows from it; the others it shows sooner, as plain facts."""


def judged(alerts: Iterable[Alert]) -> list[AlertView]:
    """Pending and firing alerts of the judge as a station's screen shows them."""
    return alert_views(alert for alert in alerts if alert.kind in FROM_THE_JUDGE)


def alert_views(alerts: Iterable[Alert]) -> list[AlertView]:
    """Alerts of any kind, with the times in their words in the zone of this machine."""
    zone = datetime.now().astimezone().tzinfo
    return [
        AlertView(
            kind=alert.kind,
            severity=alert.severity,
            state=alert.state,
            text=sentence(alert, zone or UTC),
            started=alert.pending_since if alert.started is None else alert.started,
            ended=alert.ended,
            bucket=alert.bucket,
            id=alert.id,
            acknowledged=alert.acknowledged,
            snoozed_until=alert.snoozed_until,
        )
        for alert in alerts
    ]
