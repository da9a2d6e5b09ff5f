"""The states of the console that pictures are made of, from what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from console.feed.client import Silence, Update
from console.feed.messages import MapSummary, Snapshot
from console.feed.protocol import MapAnswer
from store.operating_map.records import OperatingMap
from tests.console.recorded_feed import Answer, Recorded, RecordedFeed, recorded

AWAY = 12.0
"""Seconds since the station that is disconnected said something."""


@dataclass(frozen=True)
class State:
    """`now`: the frozen clock. `first`: what the feed says before the pictures are taken, `then`: after the screens
    were drawn once."""

    first: tuple[Update, ...]
    now: float
    answers: list[Answer] = field(default_factory=list)
    then: tuple[Update, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def feed(self) -> RecordedFeed:
        return RecordedFeed(*self.first, answers=self.answers)


def served(name: str) -> Recorded:
    """The moment of a sample as the station that recorded it would have shown it: its figures and answers, with the
    gateway, store, process and log of the station that was recorded idle."""
    then, station = recorded(name), recorded("idle")
    idle = station.snapshot.engines[0]
    later = then.snapshot.ts - station.snapshot.ts
    engines = [
        replace(engine, owned=True, pid=idle.pid, started=(idle.started or 0) + later, phases=idle.phases)
        for engine in then.snapshot.engines
    ]
    snapshot = replace(
        then.snapshot, source="live", replay=None, engines=engines, gateway=station.snapshot.gateway,
        store=station.snapshot.store, started=station.snapshot.started + later,
    )  # fmt: skip
    of_the_station = ("engine_log", "map_get")
    kept = [answer for answer in then.answers if answer.method not in of_the_station]
    return Recorded(snapshot, [*kept, *(answer for answer in station.answers if answer.method in of_the_station)])


def mapped(said: Recorded) -> Recorded:
    """The same with an operating map, made an hour before."""
    (answer,) = recorded("map").answers
    made = msgspec.json.decode(answer.result, type=MapAnswer).map
    assert isinstance(made, OperatingMap)
    made = replace(made, ts=said.snapshot.ts - 3600)
    told = Answer("map_get", {}, msgspec.Raw(msgspec.json.encode(MapAnswer(map=made))))
    summary = MapSummary(id=made.id, ts=made.ts, plan=made.plan, schedule=made.schedule)
    answers = [one for one in said.answers if one.method != "map_get"]
    return Recorded(replace(said.snapshot, map=summary), [*answers, told])


def live() -> State:
    said = mapped(served("schedule"))
    return State((said.snapshot,), said.snapshot.ts, said.answers)


def empty() -> State:
    said = recorded("idle")
    return State((said.snapshot,), said.snapshot.ts, said.answers)


def connecting() -> State:
    """No station has said anything, for two seconds."""
    return State((), recorded("idle").snapshot.ts)


def starting() -> State:
    said = recorded("starting")
    return State((said.snapshot,), said.snapshot.ts, said.answers)


def failed() -> State:
    """The engine does not start: its GPU has too little memory."""
    said = recorded("failed")
    return State((said.snapshot,), said.snapshot.ts, said.answers)


def alerting() -> State:
    said = served("version_push")
    return State((said.snapshot,), said.snapshot.ts, said.answers)


def replay() -> State:
    said = recorded("hostile")
    return State((said.snapshot,), said.snapshot.ts, said.answers, options={"intent": "replay"})


def disconnected() -> State:
    """After all was drawn the station fell silent."""
    said = mapped(served("schedule"))
    silence = Silence(said.snapshot.ts, "no snapshot from the station at ~/.local/run/specdeck/snapshots")
    return State((said.snapshot,), said.snapshot.ts + AWAY, said.answers, (silence,))


STATES: dict[str, Callable[[], State]] = {
    "live": live,
    "empty": empty,
    "connecting": connecting,
    "starting": starting,
    "failed": failed,
    "alerting": alerting,
    "replay": replay,
    "disconnected": disconnected,
}


def shown_snapshot(state: State) -> Snapshot | None:
    return next((update for update in state.first if isinstance(update, Snapshot)), None)
