"""What was configured in a stretch of record time: of each engine run that made steps in it, and by controls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import duckdb
import msgspec

from engine.policy import describe
from engine.records import EngineRecord, PolicyMode
from engine.schedule import ScheduleError
from store import progress
from store.comparing.sides import Run, Setting, untouched
from store.mode_controls import ModeControls, mode_controls
from store.resolved import resolved_by
from store.sql import only_row

_FIELDS: Final = {
    "target": "target", "drafter": "drafter", "method": "method", "vLLM": "vllm", "max K": "max_k",
    "batch K": "batch_k", "max_num_seqs": "max_num_seqs", "token budget": "max_num_batched_tokens",
    "max_model_len": "max_model_len", "data parallel": "data_parallel_size", "tensor parallel": "tensor_parallel_size",
    "pipeline parallel": "pipeline_parallel_size", "device": "device", "async scheduling": "async_scheduling",
    "runner": "runner", "graph mode": "graph_mode",
}  # fmt: skip
"""Name of a setting → field of the engine record."""


def configuration(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> tuple[list[Run], list[Setting]]:
    """Of (start, end], Unix seconds. A run that made no step in it counts for nothing."""
    settings = _Settings()
    runs = []
    modes = mode_controls(connection)
    for number, record, until in _runs(connection, start, end):
        runs.append(Run(record.engine, record.ts, record.boot))
        for name, field in _FIELDS.items():
            settings.add(record.engine, name, _written(getattr(record, field)))
        for mode in _modes(connection, number, record, modes, start, min(end, until)):
            settings.add(record.engine, "configured", _described(mode))
            settings.add(record.engine, "resolved", _resolved(record, mode))
    for name, value in _controls(connection, start, end):
        settings.add(None, name, value)
    return runs, settings.found()


class _Settings:
    def __init__(self) -> None:
        self._values: dict[tuple[str | None, str], list[str]] = {}

    def add(self, engine: str | None, name: str, value: str) -> None:
        values = self._values.setdefault((engine, name), [])
        if value not in values:
            values.append(value)

    def found(self) -> list[Setting]:
        return [Setting(engine, name, values) for (engine, name), values in self._values.items()]


def _runs(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> Iterator[tuple[int, EngineRecord, float]]:
    """Runs that made steps or were observed: number, record, when the next run of the engine began. Where single steps
    are gone, every run that the stretch touches."""
    raw_from = progress.up_to(connection, progress.RAW_FROM)
    query = """SELECT id, record, ts, lead(ts, 1, 'infinity'::DOUBLE) OVER (PARTITION BY engine ORDER BY id) AS until,
        id IN (SELECT engine_run FROM steps WHERE ts > $1 AND ts <= $2 UNION ALL
               SELECT engine_run FROM observations WHERE ts > $1 AND ts <= $2) AS seen
      FROM engines ORDER BY id"""
    for number, text, began, until, seen in connection.execute(query, [start, end]).fetchall():
        if seen or (began < min(raw_from, end) and until > start):
            yield number, msgspec.json.decode(text, type=EngineRecord), until


def _modes(
    connection: duckdb.DuckDBPyConnection,
    number: int,
    record: EngineRecord,
    controls: ModeControls,
    start: float,
    end: float,
) -> Iterator[PolicyMode]:
    """Configured modes that held in (start, end] of a run, in the order of time: what it was launched with, the mode
    that a station told it of when it heard of one, and what was set since."""
    mine = [one for one in controls.modes if record.ts <= one.ts <= end]
    held = [one.mode for one in mine if one.ts <= start]
    yield held[-1] if held else _found(connection, number, record, controls, start, end)
    yield from (one.mode for one in mine if one.ts > start)


def _found(
    connection: duckdb.DuckDBPyConnection,
    number: int,
    record: EngineRecord,
    controls: ModeControls,
    start: float,
    end: float,
) -> PolicyMode:
    """What a run came up to: a mode that was set before it began, once its steps say that it heard of that; else its
    own."""
    before = [one for one in controls.modes if one.ts < record.ts]
    if not before or before[-1].policy is None:
        return record.configured
    (heard,) = only_row(
        connection,
        "SELECT min(policy) FROM steps WHERE engine_run = ? AND ts > ? AND ts <= ? AND policy >= ?",
        [number, start, end, before[-1].policy],
    )
    return before[-1].mode if heard is not None and controls.still_holds(before[-1], heard) else record.configured


def _controls(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> Iterator[tuple[str, str]]:
    """Cap, fallback, and lane, K and fallback of workloads: what held at the start, then every change."""
    held = {name: untouched(name) for name in ("cap", "fallback")}
    inside: list[tuple[str, str]] = []
    for ts, workload, text in connection.execute(
        "SELECT ts, workload, after FROM controls WHERE after IS NOT NULL AND ts <= ? ORDER BY ts, rowid", [end]
    ).fetchall():
        for name, value in _changed(workload, msgspec.json.decode(text)):
            if ts > start:
                inside.append((name, value))
            else:
                held[name] = value
    for name, _ in inside:
        held.setdefault(name, untouched(name))
    yield from held.items()
    yield from inside


def _changed(workload: str | None, after: Any) -> Iterator[tuple[str, str]]:
    """The controls that `after` of a record sets. A workload's stands whole: what it leaves out is as it was never
    touched."""
    if not isinstance(after, dict):
        return
    if workload is None:
        for name in ("cap", "fallback"):
            if name in after:
                yield name, _written(after[name], untouched(name))
        return
    if after.keys() & {"k", "lane", "fallback"} or not after:
        for name, field in (("lane", "lane"), ("K", "k"), ("fallback", "fallback")):
            yield f"{name} of {workload}", _written(after.get(field), untouched(name))


def _described(mode: PolicyMode) -> str:
    try:
        return describe(mode)
    except ScheduleError:
        return json.dumps(mode.schedule)


def _resolved(record: EngineRecord, mode: PolicyMode) -> str:
    resolved = resolved_by(record, mode)
    return _described(resolved) + (f" ({resolved.reason})" if resolved.reason else "")


def _written(value: Any, unset: str = "unknown") -> str:
    if value is None:
        return unset
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
