"""What happened to a store's engines, as the judge takes it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple

import duckdb
import msgspec

from store.executed import judge as executed_policies
from store.judge.inputs import (
    ClockStep,
    ControlDone,
    EngineDown,
    EngineStarted,
    EngineUp,
    Event,
    PolicyMismatch,
    RowsQuarantined,
    TelemetryLost,
)

CLOCK_SECONDS: Final = 1.0
"""A step that ended so long before the one before it tells of a clock that was set back."""


LOOK_BACK_SECONDS: Final = 900.0
"""Steps so far back tell whether a mismatch is new."""


class Happened(NamedTuple):
    ts: float
    event: Event


def events(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> list[Happened]:
    """Everything of [start, stop), Unix seconds, in the order of time."""
    found = [
        *_starts(connection, start, stop),
        *_controls(connection, start, stop),
        *_gaps(connection, start, stop),
        *_quarantined(connection, start, stop),
        *_clock_steps(connection, start, stop),
        *_mismatches(connection, start, stop),
    ]
    return sorted(found, key=attrgetter("ts"))


def _starts(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    for engine, ts, version, *settings in connection.execute(
        """SELECT engine, ts, model_version, max_k, batch_k, max_num_seqs, data_parallel_size, device FROM engines
           WHERE ts >= ? AND ts < ? ORDER BY id""",
        [start, stop],
    ).fetchall():
        named = zip(("max K", "batch K", "sequences", "ranks", "device"), settings, strict=True)
        configuration = ", ".join(f"{name} {value}" for name, value in named)
        yield Happened(ts, EngineStarted(engine, ts, version, configuration))


def _controls(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    for ts, actor, action, workload, before, after in connection.execute(
        "SELECT ts, actor, action, workload, before, after FROM controls WHERE ts >= ? AND ts < ? ORDER BY ts",
        [start, stop],
    ).fetchall():
        text = f"{_short(before)} → {_short(after)}" if before or after else ""
        yield Happened(ts, ControlDone(ts, actor, action, workload, text))


def _gaps(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    """A gap without lost frames is an outage: it is known once it is over."""
    for engine, ts, lost, since, reason in connection.execute(
        "SELECT engine, ts, frames_lost, since, reason FROM gaps WHERE ts >= ? AND ts < ? ORDER BY ts", [start, stop]
    ).fetchall():
        if lost or since is None:
            yield Happened(ts, TelemetryLost(engine, ts, since, lost, reason))
        else:
            yield Happened(ts, EngineDown(engine, since, reason or ""))
            yield Happened(ts, EngineUp(engine, ts))


def _quarantined(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    for engine, ts, rows in connection.execute(
        """SELECT engine, max(q.ts), count(*) FROM quarantine q JOIN engines e ON engine_run = e.id
           WHERE q.ts >= ? AND q.ts < ? GROUP BY engine, floor(q.ts / 10) ORDER BY 2""",
        [start, stop],
    ).fetchall():
        yield Happened(ts, RowsQuarantined(engine, ts, rows))


def _clock_steps(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    for engine, ts, seconds in connection.execute(
        """SELECT engine, s.ts, s.ts - lag(s.ts) OVER (PARTITION BY engine_run ORDER BY s.id) AS jump
           FROM steps s JOIN engines e ON engine_run = e.id WHERE s.ts >= ? AND s.ts < ? QUALIFY jump < ?
           ORDER BY s.ts""",
        [start, stop, -CLOCK_SECONDS],
    ).fetchall():
        yield Happened(ts, ClockStep(engine, ts, seconds))


def _mismatches(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    _, found = executed_policies(connection, start, stop, since=start - LOOK_BACK_SECONDS)
    for one in found:
        event = PolicyMismatch(
            one.engine, one.started, one.ended, _json(one.configured), _json(one.resolved), one.executed, one.reason
        )
        if start <= one.started < stop:
            yield Happened(one.started, msgspec.structs.replace(event, ended=None))
        if one.ended is not None and start <= one.ended < stop:
            yield Happened(one.ended, event)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _short(text: str | None) -> str:
    return "nothing" if text is None else text[:80]
