"""One sentence for each alert: what, where, since when, how sure, what changed at that time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Final

from store.figures import BucketKey
from store.judge.alerts import ACCEPTANCE, Alert, Cause, Kind

_MOMENTS: Final = ("version", "configuration", "control", "shift")
"""Causes whose time matters."""

_AGAINST: Final = {
    "baseline": "its 7-day baseline",
    "pinned": "its pinned reference",
    "change": "its level before the engine changed,",
}


def sentence(alert: Alert, zone: tzinfo = UTC) -> str:
    """The alert in words, plain text: tags may hold anything and are not escaped. `zone`: of the times in it."""
    clock = _clock(zone)
    said = f"{place(alert)}: {_SAYINGS[alert.kind](alert)} {_when(alert, clock)}{_sureness(alert)}."
    named = [_named(cause, clock) for cause in alert.causes]
    if alert.kind == "failing_workload":
        named.append("The vanilla lane would spare both.")
    moved = any(cause.kind in ("mix", "version", "configuration") for cause in alert.causes)
    if alert.kind in ACCEPTANCE and alert.started is not None and not moved:  # causes are looked for when it fires
        named.append("Mix and version unchanged.")
    return " ".join([said, *named])


def place(alert: Alert) -> str:
    """Where it is: the bucket as the screens write it, or the engine."""
    return f"engine {alert.engine}" if alert.bucket is None else bucket_text(alert.bucket)


def bucket_text(bucket: BucketKey) -> str:
    """Workload, context and temperature; a temperature of 0 goes without saying."""
    parts = [bucket.workload, bucket.context, None if bucket.temperature == "0" else bucket.temperature]
    return " ".join(part for part in parts if part)


def _named(cause: Cause, clock: Callable[[float], str]) -> str:
    when = f" ({clock(cause.ts)})" if cause.ts is not None and cause.kind in _MOMENTS else ""
    return f"{cause.text[:1].upper()}{cause.text[1:]}{when}."


def _when(alert: Alert, clock: Callable[[float], str]) -> str:
    since = clock(alert.started if alert.started is not None else alert.pending_since)
    if alert.state == "pending":
        return f"in the window that ended at {since}; the next one will tell"
    if alert.ended is not None and alert.started is not None:
        return f"from {since} to {clock(alert.ended)}"
    return f"since {since}"


def _sureness(alert: Alert) -> str:
    evidence = alert.evidence
    if alert.kind in ACCEPTANCE:
        return f" (n {evidence.get('n')}; bound {_signed(evidence.get('bound_points'))})"
    if alert.kind in ("speedup_floor", "failing_workload"):
        low, high = evidence.get("speedup_low"), evidence.get("speedup_high")
        return f" ({_times(low)} to {_times(high)}; {evidence.get('cells')} cells)"
    return ""


def _acceptance(alert: Alert) -> str:
    evidence = alert.evidence
    points, depth = _points(evidence.get("fall_points")), evidence.get("depth")
    if evidence.get("against") == "before":
        before, now = _percent(evidence.get("reference")), _percent(evidence.get("present"))
        return f"acceptance at depth {depth} fell by {points}, from {before} to {now},"
    verb = "is" if alert.ended is None else "was"
    against = _AGAINST.get(str(evidence.get("against")), "its reference")
    return f"acceptance at depth {depth} {verb} {points} under {against}"


def _speedup(alert: Alert) -> str:
    return f"realised speedup {_times(alert.evidence.get('speedup'))} is below {_times(alert.evidence.get('floor'))}"


def _failing(alert: Alert) -> str:
    wasted = _percent(alert.evidence.get("waste"))
    return f"{wasted} of the draft tokens are wasted and {_speedup(alert)}"


def _mismatch(alert: Alert) -> str:
    evidence = alert.evidence
    why = f" ({evidence['reason']})" if evidence.get("reason") else ""
    return (
        f"executes K {evidence.get('executed')}, configured is {evidence.get('configured')}, "
        f"resolved {evidence.get('resolved')}{why}"
    )


def _lost(alert: Alert) -> str:
    frames = alert.evidence.get("frames_lost") or 0
    if frames == 1:
        return "one frame of telemetry was lost"
    return f"{frames} frames of telemetry were lost" if frames else "telemetry was not received"


def _quarantine(alert: Alert) -> str:
    rows = alert.evidence.get("rows")
    if rows == 1:
        return "one impossible row was set apart and counts nowhere"
    return f"{rows} impossible rows were set apart and count nowhere"


def _clock_step(alert: Alert) -> str:
    return f"the wall clock jumped by {alert.evidence.get('seconds')} s"


def _down(alert: Alert) -> str:
    why = f" ({alert.evidence['why']})" if alert.evidence.get("why") else ""
    return f"{'is' if alert.ended is None else 'was'} down{why}"


def _stale(alert: Alert) -> str:
    evidence = alert.evidence
    what = f" ({evidence['differs']})" if evidence.get("differs") else ""
    verb = "was" if alert.ended is not None else "is"
    return f"the operating map {evidence.get('map', '')} {verb} of something else than what runs{what}".replace(
        "  ", " "
    )


_SAYINGS: Final[dict[Kind, Callable[[Alert], str]]] = {
    "drift": _acceptance,
    "shift": _acceptance,
    "speedup_floor": _speedup,
    "failing_workload": _failing,
    "policy_mismatch": _mismatch,
    "telemetry_loss": _lost,
    "quarantine": _quarantine,
    "clock_step": _clock_step,
    "engine_down": _down,
    "map_stale": _stale,
}


def _clock(zone: tzinfo) -> Callable[[float], str]:
    return lambda ts: datetime.fromtimestamp(ts, zone).strftime("%H:%M")


def _points(value: object) -> str:
    """At most one decimal, and none where it is 0."""
    return f"{value:.1f} points".replace(".0 ", " ") if isinstance(value, int | float) else "some points"


def _percent(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, int | float) else "unknown"


def _signed(value: object) -> str:
    return f"{value:.1f}".replace("-", "−") if isinstance(value, int | float) else "unknown"


def _times(value: object) -> str:
    return f"{value:.2f}×" if isinstance(value, int | float) else "unknown"
