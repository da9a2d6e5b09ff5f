"""Traces of days for the judge, written compactly: few sequences in a burst, and nothing between the bursts.

There is no chance in them: half of the sequences of a stream accept somewhat more than its rate, half as much less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from engine.records import PolicyMode, Record, Row
from store.trace import TraceWriter
from tests.store.builders import T0, engine, finish, row, sequence, step

HOUR = 3600.0
DAY = 24 * HOUR
STEP_SECONDS = 0.05
_ADAPTIVE = PolicyMode(mode="adaptive", schedule=[(1, 64, 8)], act=True)


class Stream(NamedTuple):
    """Requests of one workload: in each burst `sequences` new ones arrive, and each has `steps` decode rows."""

    workload: str = "chat"
    rate: float = 0.78
    """Share of the draft tokens that is accepted."""
    k: int = 5
    sequences: int = 36
    steps: int = 10
    spread: float = 0.08
    temperature: float = 0.0
    accepted: int | None = None
    """So many of each draft, whatever K is, in place of a rate."""
    quiet: int = 0
    """First so many rows at K = 0, …"""
    resumed: int = 0
    """… then as many draft steps that accept nothing, before the others."""

    def drafted(self, place: int) -> list[tuple[int, int]]:
        """Drafted and accepted of each row of the sequence at `place` in its burst."""
        rate = min(1.0, max(0.0, self.rate + (self.spread if place % 2 else -self.spread)))
        rows = [(0, 0)] * self.quiet + [(self.k, 0)] * self.resumed
        for number in range(self.steps):
            tokens = [int(rate * self.k * (place + one) + 0.5) for one in (number, number + 1)]
            found = tokens[1] - tokens[0] if self.accepted is None else self.accepted
            rows.append((self.k, min(self.k, found)))
        return rows


class Tape:
    """A trace in the making. `now`: Unix seconds, moves on as things happen."""

    def __init__(self, **engine_fields: Any) -> None:
        self.now = T0 // HOUR * HOUR
        self.records: list[Record] = []
        self._fields = {"configured": _ADAPTIVE, "resolved": _ADAPTIVE} | engine_fields
        self._sequences = self._steps = 0
        self.start()

    def start(self, **changed: Any) -> None:
        """The engine starts, or starts again with other fields."""
        self._fields |= changed
        self.records.append(engine(self.now, **self._fields))

    def burst(self, streams: Sequence[Stream], **fields: Any) -> None:
        """Requests of all streams, served side by side from now on."""
        rows: list[list[Row]] = []
        names = []
        for stream in streams:
            for place in range(stream.sequences):
                names.append(name := self.arrive(stream.workload, stream.temperature))
                for number, (d, a) in enumerate(stream.drafted(place)):
                    if number == len(rows):
                        rows.append([])
                    rows[number].append(row(name, d=d, a=a))
        for one in rows:
            self.step(one, **fields)
        self.leave(names)

    def arrive(self, workload: str, temperature: float = 0.0) -> str:
        """A new sequence; its name."""
        self._sequences += 1
        self.records.append(sequence(f"s{self._sequences}", workload, self.now, temperature=temperature))
        return f"s{self._sequences}"

    def leave(self, names: Iterable[str]) -> None:
        self.records += [finish(name, self.now) for name in names]

    def step(self, rows: Sequence[Row], seconds: float = STEP_SECONDS, **fields: Any) -> None:
        self._steps += 1
        self.now += seconds
        deepest = max((one.k_asked for one in rows), default=0)
        known = {"k_verify": deepest, "k_draft": deepest, "duration_ms": 1000 * seconds, "limit_draft": "adaptive"}
        self.records.append(step(self._steps, rows, self.now, **(known | fields)))

    def serve(self, seconds: float, streams: Sequence[Stream], every: float = 300.0) -> None:
        """So long, a burst at the beginning of each `every` seconds."""
        for _ in range(round(seconds / every)):
            began = self.now
            self.burst(streams)
            self.now = began + every

    def cells(self, many: int, batch: int, k: int, seconds: float) -> None:
        """In each of so many cells of 10 s `batch` new sequences and four steps, which accept 1.2 tokens on average."""
        for cell in range(many):
            began = self.now
            names = [self.arrive("chat") for _ in range(batch)]
            for number in range(4):
                places = (((4 * cell + number) * batch + place) % 5 for place in range(batch))
                rows = [row(name, d=k, a=min(k, 1 + (place == 4))) for name, place in zip(names, places, strict=True)]
                self.step(rows, seconds)
            self.leave(names)
            self.now = began + 10.0

    def write(self, path: Path) -> Path:
        with TraceWriter(path) as writer:
            for record in self.records:
                writer.write(record)
        return path
