"""Operating maps as they are kept: each as a record of what was done, so that traces, exports and replays carry it."""

from __future__ import annotations

import time
from typing import Final

import duckdb
import msgspec

from engine.records import ControlRecord
from store.operating_map.records import OperatingMap

MAP: Final = "map"
"""The action under which a map is recorded; it is the record's `numbers`."""


def control(made: OperatingMap, ts: float, actor: str) -> ControlRecord:
    """The record of a map that holds since `ts`, Unix seconds."""
    return ControlRecord(
        ts=ts, actor=actor, action=MAP, after={"id": made.id, "plan": made.plan}, why=told(made),
        numbers=msgspec.to_builtins(made),
    )  # fmt: skip


def told(made: OperatingMap) -> str:
    """One sentence."""
    known = sum(cell.state != "not_measured" for cell in made.cells if cell.workload is None)
    proposal = "it proposes no schedule" if made.schedule is None else "it proposes a schedule"
    return f"operating map {made.id}: {known} of {len(made.loads)} loads measured by plan {made.plan}, {proposal}"


def keep(connection: duckdb.DuckDBPyConnection, made: OperatingMap, *, actor: str = "rehearsal") -> None:
    """Keep a map in a store that no station has open: from now on it is the one that holds.

    Raises:
        duckdb.Error: it can't be written.
    """
    record = control(made, round(time.time(), 6), actor)
    after, numbers = (msgspec.json.encode(value).decode() for value in (record.after, record.numbers))
    connection.execute(
        "INSERT INTO controls (ts, actor, action, after, why, numbers) VALUES (?, ?, ?, ?, ?, ?)",
        [record.ts, record.actor, record.action, after, record.why, numbers],
    )


def last_map(connection: duckdb.DuckDBPyConnection) -> OperatingMap | None:
    """The map that holds at the end of the record: the last one that can be read. None where none was made.

    Raises:
        duckdb.Error: it can't be read.
    """
    kept = connection.execute(
        "SELECT numbers FROM controls WHERE action = ? AND numbers IS NOT NULL ORDER BY ts DESC, rowid DESC", [MAP]
    ).fetchall()
    return next((found for (text,) in kept if (found := _read(text)) is not None), None)


def recorded_map(record: ControlRecord) -> OperatingMap | None:
    """The map of a record; None where it holds none."""
    if record.action != MAP or record.numbers is None:
        return None
    try:
        return msgspec.convert(record.numbers, OperatingMap)
    except msgspec.ValidationError:
        return None


def _read(text: str) -> OperatingMap | None:
    try:
        return msgspec.json.decode(text, type=OperatingMap)
    except msgspec.DecodeError:
        return None
