"""Alerts of the judge as they stood at a moment, from the last version of each that the store keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from store.judge.alerts import Alert


def alerts_then(alerts: Iterable[Alert], ts: float, *, over: bool = False) -> Iterator[Alert]:
    """Those that were pending or firing at `ts`. Figures of their evidence are the last ones; causes that came later
    are left out.

    Args:
        over: those too that had fired and were over by then.
    """
    for alert in alerts:
        if alert.pending_since > ts:
            continue
        if alert.ended is not None and alert.ended <= ts:
            if over and alert.started is not None:
                yield alert
            continue
        fired = alert.started is not None and (alert.confirmed is None or alert.confirmed <= ts)
        acknowledged = alert.acknowledged_at is not None and alert.acknowledged_at <= ts
        yield replace(
            alert,
            state="firing" if fired else "pending",
            started=alert.started if fired else None,
            ended=None,
            causes=[cause for cause in alert.causes if cause.ts is None or cause.ts <= ts],
            acknowledged=alert.acknowledged if acknowledged else None,
            acknowledged_at=alert.acknowledged_at if acknowledged else None,
        )
