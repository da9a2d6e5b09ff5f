"""What happened in the record and when: events, marks, alerts, what was done to the policy. Read anew as it grows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

import duckdb

from console.feed.messages import Event, ReplayMark
from console.picturing.history_text import action_text
from console.replaying.marks import gap_text, marks
from engine.records import ControlRecord
from store.alerts import all_alerts, read_remarks
from store.control_history import SCORE, all_controls
from store.judge.alerts import Alert
from store.moments import every_start

EVENTS_SHOWN: Final = 50
_TS = attrgetter("ts")


class Timeline:
    """All of it at one reading."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.controls: list[ControlRecord] = all_controls(connection)
        """In the order of time."""
        self.alerts: list[Alert] = all_alerts(connection)
        self.marks: list[ReplayMark] = marks(connection, self.controls, self.alerts)
        self.events: list[Event] = sorted(_events(connection, self.controls), key=_TS)

    def events_until(self, ts: float, since: float = 0.0) -> list[Event]:
        """Events in [since, ts], oldest first."""
        return [event for event in self.events[: bisect_right(self.events, ts, key=_TS)] if event.ts >= since]

    def controls_until(self, ts: float) -> list[ControlRecord]:
        return self.controls[: bisect_right(self.controls, ts, key=_TS)]


def _events(connection: duckdb.DuckDBPyConnection, controls: list[ControlRecord]) -> Iterator[Event]:
    """As a station tells them."""
    for record in controls:
        if record.action != SCORE:
            version = "" if record.policy is None else f", policy {record.policy}"
            yield Event(record.ts, "control", f"{action_text(record, record.ts)}{version}")
    for engine in every_start(connection):
        version = f"{engine.target} · {engine.method} · vLLM {engine.vllm}"
        yield Event(engine.ts, "engine", f"{engine.engine} announced itself: {version}")
    for ts, name, lost, reason in connection.execute("SELECT ts, engine, frames_lost, reason FROM gaps").fetchall():
        yield Event(ts, "gap", gap_text(name, lost, reason))
    for remark in read_remarks(connection, 0.0, float("inf")):
        yield Event(remark.ts, remark.kind, remark.text)
