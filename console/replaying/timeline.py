"""What happened in the record and when: events, marks, alerts, what was done to the policy. Read anew as it grows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter, itemgetter
from typing import Final

import duckdb

from console.feed.messages import Event, ReplayMark
from console.picturing.history_text import action_text
from console.replaying.marks import gap_text, marks
from console.replaying.policy_then import PolicyHistory
from engine.records import ControlRecord, EngineRecord, PolicyMode
from store.alerts import all_alerts, read_remarks
from store.control_history import SCORE, all_controls
from store.judge.alerts import Alert
from store.moments import every_start
from store.operating_map.keeping import recorded_map
from store.operating_map.records import OperatingMap

EVENTS_SHOWN: Final = 50
_TS = attrgetter("ts")


class Timeline:
    """All of it at one reading."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.controls: list[ControlRecord] = all_controls(connection)
        """In the order of time."""
        self.alerts: list[Alert] = all_alerts(connection)
        self.marks: list[ReplayMark] = marks(connection, self.controls, self.alerts)
        starts = every_start(connection)
        self.policy = PolicyHistory(self.controls, starts[0].configured if starts else PolicyMode(mode="off"))
        self._maps = [(record.ts, made) for record in self.controls if (made := recorded_map(record)) is not None]
        self._events = sorted(_events(connection, self.controls, starts), key=_TS)

    def events_since(self, since: float, ts: float) -> list[Event]:
        """Events in [since, ts], oldest first."""
        return self._events[bisect_left(self._events, since, key=_TS) : bisect_right(self._events, ts, key=_TS)]

    def last_events(self, ts: float) -> list[Event]:
        """The last ones by `ts`, oldest first."""
        stop = bisect_right(self._events, ts, key=_TS)
        return self._events[max(0, stop - EVENTS_SHOWN) : stop]

    def map_at(self, ts: float) -> OperatingMap | None:
        """The operating map that held at `ts`."""
        place = bisect_right(self._maps, ts, key=itemgetter(0))
        return self._maps[place - 1][1] if place else None

    def controls_until(self, ts: float) -> list[ControlRecord]:
        return self.controls[: bisect_right(self.controls, ts, key=_TS)]


def _events(
    connection: duckdb.DuckDBPyConnection, controls: list[ControlRecord], starts: list[EngineRecord]
) -> Iterator[Event]:
    """As a station tells them."""
    for record in controls:
        if record.action != SCORE:
            version = "" if record.policy is None else f", policy {record.policy}"
            yield Event(record.ts, "control", f"{action_text(record, record.ts)}{version}")
    for engine in starts:
        version = f"{engine.target} · {engine.method} · vLLM {engine.vllm}"
        yield Event(engine.ts, "engine", f"{engine.engine} announced itself: {version}")
    for ts, name, lost, reason in connection.execute("SELECT ts, engine, frames_lost, reason FROM gaps").fetchall():
        yield Event(ts, "gap", gap_text(name, lost, reason))
    for remark in read_remarks(connection, 0.0, float("inf")):
        yield Event(remark.ts, remark.kind, remark.text)
