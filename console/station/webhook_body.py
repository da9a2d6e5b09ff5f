"""What is posted: one JSON object about one or several alerts, without a link in it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from console.feed.messages import AlertView
from console.notices.limiter import Message
from console.notices.watch import Notice, What
from console.notices.words import one_line, plain
from store.judge.alerts import Alert

LONGEST_TEXT: Final = 1000
LONGEST_NAME: Final = 200

Measured = tuple[float | None, float | None]
"""A value and the threshold that it is held against."""

_INERT: Final = str.maketrans({"<": "‹", ">": "›", "@": "＠", "`": "'", "*": "∗"})
"""Chat programs would make a mention, a link or bold text of these."""


class AlertBody(msgspec.Struct, frozen=True, kw_only=True):
    """Times are Unix seconds; `value` and `threshold` as in the alert's sentence, null where it has none."""

    event: What
    kind: str
    severity: str
    state: str
    workload: str | None
    context: str | None
    temperature: str | None
    model_version: str | None
    sentence: str
    started: float
    ended: float | None
    value: float | None
    threshold: float | None
    id: int | None


class WebhookBody(msgspec.Struct, frozen=True, kw_only=True):
    """`text`: all of it in one line, for chat programs. `station`: unique per station process."""

    version: int = 1
    source: str = "specdeck"
    station: str
    sent: float
    text: str
    alerts: list[AlertBody]
    held_back: int
    left_out: int
    left_out_critical: int


def webhook_body(message: Message, station: str, now: float, measured: Callable[[AlertView], Measured]) -> bytes:
    """The JSON of a message. `measured`: what is known of an alert in figures."""
    body = WebhookBody(
        station=station,
        sent=round(now, 3),
        text=f"specdeck: {one_line(message, LONGEST_TEXT)}".translate(_INERT),
        alerts=[
            _alert(notice, notice.alert, measured(notice.alert))
            for notice in message.notices
            if notice.alert is not None
        ],
        held_back=message.held_back,
        left_out=message.left_out,
        left_out_critical=message.left_out_critical,
    )
    return msgspec.json.encode(body)


def measured_of(alert: Alert | None) -> Measured:
    """By the evidence of an alert of the judge: acceptance at a depth against its reference, or speedup against its
    floor."""
    if alert is None:
        return None, None
    names = {
        "drift": ("present", "reference"), "shift": ("present", "reference"),
        "speedup_floor": ("speedup", "floor"), "failing_workload": ("speedup", "floor"),
    }.get(alert.kind)  # fmt: skip
    if names is None:
        return None, None
    value, threshold = (alert.evidence.get(name) for name in names)
    return _number(value), _number(threshold)


def _alert(notice: Notice, alert: AlertView, measured: Measured) -> AlertBody:
    key = alert.bucket
    value, threshold = measured
    return AlertBody(
        event=notice.what,
        kind=alert.kind,
        severity=alert.severity,
        state="resolved" if notice.what in ("over", "passed") else alert.state,
        workload=_name(key.workload if key is not None else None),
        context=_name(key.context if key is not None else None),
        temperature=_name(key.temperature if key is not None else None),
        model_version=_name(key.model_version if key is not None else None),
        sentence=plain(alert.text, LONGEST_TEXT),
        started=alert.started,
        ended=alert.ended,
        value=value,
        threshold=threshold,
        id=alert.id,
    )


def _name(text: str | None) -> str | None:
    return None if text is None else plain(text, LONGEST_NAME)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
