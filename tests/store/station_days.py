"""Minutes of a station's life as frames of an engine, in which enough goes wrong for alerts of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from engine.frames import Announcement, ArrivedSequence, FinishedSequence, Frame
from engine.records import ControlRecord, PolicyMode, StateRecord
from store.database import Store
from store.executed import judge as executed
from store.figures import Transition
from store.ingest import Ingest
from store.judge.alerts import Alert
from store.judge.settings import JudgeSettings
from store.judging import Judging
from store.states import make_state
from tests.store.builders import announcement, arrived, finished, frame, row

START = 1_790_000_100.0
"""A multiple of 300 s."""
STEP_SECONDS = 2.0
ADAPTIVE = PolicyMode(mode="adaptive", schedule=[(1, 64, 4)], act=True)
Message = Frame | Announcement | ControlRecord


def day(minutes: int, seed: int = 1) -> Iterator[tuple[float, Message]]:
    """Messages with the record time at which they come. Drafts cost more than they save until 3/5 of the time, then
    they pay; at 2/5 frames are lost, at 4/5 the engine is killed and comes back with another drafter."""
    random = np.random.default_rng(seed)
    policies: dict[str, Any] = {"configured": ADAPTIVE, "resolved": ADAPTIVE}
    boot, number, handle, alive = "b1", 0, 0, list[ArrivedSequence]()
    yield START, announcement(ts=START, boot=boot, **policies)
    total = round(minutes * 60 / STEP_SECONDS)
    for place in range(1, total):
        ts = START + place * STEP_SECONDS + random.uniform(-0.5, 0.5)
        share = place / total
        arrivals: list[ArrivedSequence] = []
        finishes: list[FinishedSequence] = []
        if place == total * 4 // 5:
            boot, number, alive = "b2", 0, []
            yield ts, announcement(ts=ts, boot=boot, drafter="drafter 2", **policies)
            continue
        if place == total * 2 // 5:
            number += 7
        if place in (total // 3, total // 2):
            yield ts, ControlRecord(ts, "operator", "cap", None, {"cap": None}, {"cap": 3}, 2, "try")
        if place % 8 == 0 and alive:
            finishes = [finished(alive.pop(0).seq, ts) for _ in range(2)]
        while len(alive) < 4:
            handle += 1
            alive.append(arrived(handle, "chat" if handle % 2 else "code", ts))
            arrivals.append(alive[-1])
        k = 0 if place // 6 % 4 == 0 else 4
        good = 3 if share > 0.6 else 1
        accepted = [0 if k == 0 else int(random.integers(max(0, good - 1), good + 2)) for _ in alive]
        rows = [
            row(str(one.seq), d=k, a=a, limit="adaptive", context=100 + place % 50)
            for one, a in zip(alive, accepted, strict=True)
        ]
        number += 1
        yield ts, frame(
            number, rows, arrivals, finishes, boot, ts=round(ts, 6), k_verify=k, k_draft=k, limit_draft="adaptive",
            duration_ms=(30.0 if k == 0 else 55.0) * random.uniform(0.97, 1.03),
        )  # fmt: skip


@dataclass
class Station:
    """Takes messages in as a station does. `again`: asked at each flush whether another judge goes on, with what was
    saved."""

    settings: JudgeSettings | None = None
    again: Callable[[], bool] = lambda: False
    store: Store = field(default_factory=Store.memory)

    def __post_init__(self) -> None:
        self.ingest = Ingest(self.store)
        self.judging = Judging(self.store.connection, self.settings)

    def live(self, messages: Iterator[tuple[float, Message]], pause: Callable[[], float]) -> None:
        """Take in all of it, flushed and judged after each `pause` seconds of record time."""
        due = 0.0
        for ts, message in messages:
            match message:
                case Frame():
                    self.ingest.frame(message, ts)
                case Announcement():
                    self.ingest.announcement(message, ts)
                case _:
                    self.ingest.control(message)
            if ts >= due:
                due = ts + pause()
                self.ingest.flush()
                self.judging.catch_up()
                if self.again():
                    self.judging.save()
                    self.judging = Judging(self.store.connection, self.settings)
        self.ingest.flush()
        self.judging.catch_up()

    def state(self) -> StateRecord:
        return make_state(self.judging, self.store.connection, self.judging.up_to)


def told(alerts: list[Alert]) -> list[dict[str, object]]:
    """Alerts without their numbers, which go by when something became known."""
    plain = [msgspec.to_builtins(msgspec.structs.replace(alert, id=0)) for alert in alerts]
    return sorted((rounded(one) for one in plain), key=str)


def rounded(value: Any) -> Any:
    """Plain values with figures to nine places: sums in another order differ in the last."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if abs(value) < 1e6 else round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def transitions(store: Store, since: float, until: float) -> list[Transition]:
    return executed(store.connection, since, until)[0]
