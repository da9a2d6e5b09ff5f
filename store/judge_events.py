"""What happened to a store's engines, as the judge takes it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple

import duckdb
import msgspec

from engine.records import RECORD_TEXT_ACTION, EngineRecord
from store.control_words import changed, mode_words
from store.executed import judge as executed_policies
from store.judge.inputs import (
    ClockStep,
    ControlDone,
    EngineDown,
    EngineStarted,
    EngineUp,
    Event,
    PolicyKept,
    PolicyMismatch,
    RowsQuarantined,
    TelemetryLost,
)
from store.judge_maps import map_events
from store.operating_map.keeping import MAP

ALERT_ACTION: Final = "alert_"
"""What the operator does about alerts, e.g. `alert_snooze`, changes nothing on an engine; nor does a map."""
CLOCK_SECONDS: Final = 1.0
"""A step that ended so long before the one before it tells of a clock that was set back."""
LOOK_AHEAD_STEPS: Final = 10_000
"""The next step of an engine is looked for among as many of all engines."""
LOOK_BACK_SECONDS: Final = 900.0
"""Steps so far back tell how long a mismatch has lasted."""


class Happened(NamedTuple):
    ts: float
    event: Event


def events(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> list[Happened]:
    """Everything of [start, stop), Unix seconds, in the order of time."""
    found = [
        *_starts(connection, start, stop),
        *(Happened(*found) for found in map_events(connection, start, stop)),
        *_controls(connection, start, stop),
        *_gaps(connection, start, stop),
        *_quarantined(connection, start, stop),
        *_clock_steps(connection, start, stop),
        *_mismatches(connection, start, stop),
    ]
    return sorted(found, key=attrgetter("ts"))


def _starts(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    for ts, version, text in connection.execute(
        "SELECT ts, model_version, record FROM engines WHERE ts >= ? AND ts < ? ORDER BY id", [start, stop]
    ).fetchall():
        record = msgspec.json.decode(text, type=EngineRecord)
        yield Happened(ts, EngineStarted(record.engine, ts, version, _configuration(record)))


def _configuration(record: EngineRecord) -> str:
    """What may move acceptance besides the model version. The same for every start of an engine that nobody changed:
    neither the boot nor the process, and no policy, which controls tell of."""
    settings = {
        "max K": record.max_k,
        "batch K": record.batch_k,
        "sequences": record.max_num_seqs,
        "data parallel": record.data_parallel_size,
        "tensor parallel": record.tensor_parallel_size,
        "pipeline parallel": record.pipeline_parallel_size,
        "device": record.device,
        "runner": record.runner,
        "graph mode": record.graph_mode,
        "asynchronous": record.async_scheduling,
    }
    return ", ".join(f"{name} {'unknown' if value is None else value}" for name, value in settings.items())


def _controls(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    for ts, actor, action, workload, before, after in connection.execute(
        f"""SELECT ts, actor, action, workload, before, after FROM controls
            WHERE ts >= ? AND ts < ? AND NOT starts_with(action, '{ALERT_ACTION}') AND action NOT IN (?, ?)
            ORDER BY ts""",
        [start, stop, MAP, RECORD_TEXT_ACTION],
    ).fetchall():
        yield Happened(ts, ControlDone(ts, actor, action, workload, changed(action, workload, before, after)))


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
    """A clock that was set back, at the moment that it had come to: what follows has earlier times."""
    for engine, ts, seconds in connection.execute(
        f"""WITH inside AS (SELECT min(id) AS first, max(id) AS last FROM steps WHERE ts >= $1 AND ts < $2)
           SELECT engine, s.ts, lead(s.ts) OVER (PARTITION BY engine_run ORDER BY s.id) - s.ts AS jump
           FROM steps s JOIN engines e ON engine_run = e.id
           WHERE s.id BETWEEN (SELECT first FROM inside) AND (SELECT last + {LOOK_AHEAD_STEPS} FROM inside)
           QUALIFY jump < $3 AND s.ts >= $1 AND s.ts < $2 ORDER BY s.ts""",
        [start, stop, -CLOCK_SECONDS],
    ).fetchall():
        yield Happened(ts, ClockStep(engine, ts, seconds))


def _mismatches(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> Iterator[Happened]:
    """A mismatch is told again as long as it lasts, since it shows only some steps after it began. That it is over is
    told of every engine that ran without one: its last step may lie before `start`."""
    back = start - LOOK_BACK_SECONDS
    _, found = executed_policies(connection, back, stop, since=back)
    lasting = set()
    for one in found:
        if one.ended is not None and one.ended < start:
            continue
        asked, resolved = mode_words(one.configured), mode_words(one.resolved)
        event = PolicyMismatch(one.engine, one.started, None, asked, resolved, one.executed, one.reason)
        yield Happened(max(one.started, start), event)
        if one.ended is None:
            lasting.add(one.engine)
        else:
            yield Happened(one.ended, msgspec.structs.replace(event, ended=one.ended))
    for engine, first in connection.execute(
        """SELECT engine, min(s.ts) FROM steps s JOIN engines e ON engine_run = e.id WHERE s.ts >= ? AND s.ts < ?
           GROUP BY engine ORDER BY engine""",
        [start, stop],
    ).fetchall():
        if engine not in lasting:
            ended = max((one.ended for one in found if one.engine == engine and one.ended is not None), default=first)
            yield Happened(max(ended, start), PolicyKept(engine, ended))
