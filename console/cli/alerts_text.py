"""Alerts as text: a line each, with the number by which it is acknowledged; newest last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from console.cli.figures_text import printable
from store.judge.reports import AlertReport

_MARKS = {"critical": "■", "warn": "▲", "info": "·"}
_WIDTH = 400


def as_text(alerts: Sequence[AlertReport]) -> str:
    if not alerts:
        return "no alerts"
    return "\n".join(_line(alert) for alert in alerts)


def _line(alert: AlertReport) -> str:
    began = _moment(alert.started)
    until = f" – {_moment(alert.ended)}" if alert.ended is not None else ""
    asleep = "" if alert.snoozed_until is None else f", asleep until {_moment(alert.snoozed_until)}"
    seen = "" if alert.acknowledged is None else f", acknowledged by {printable(alert.acknowledged)}"
    head = f"{_MARKS[alert.severity]} {alert.id:>3} {alert.state:<8} {began}{until}"
    return f"{head}  {alert.kind}: {printable(alert.text, _WIDTH)}{seen}{asleep}"


def _moment(ts: float) -> str:
    return datetime.fromtimestamp(ts).astimezone().strftime("%Y-%m-%d %H:%M:%S")
