"""Alerts as the store keeps them: written as the judge changes them, read by whoever asks."""

from __future__ import annotations

from typing import Any

import duckdb
import msgspec

from store.judge.alerts import Alert, Cause, Changes, Note
from store.judge.reports import AlertHistory, reported
from store.judge.sentence import sentence
from store.sql import only_row


def write_changes(connection: duckdb.DuckDBPyConnection, changes: Changes) -> None:
    """Keep the present version of each alert, inside the caller's transaction."""
    for alert in changes.alerts:
        connection.execute("DELETE FROM alerts WHERE id = ?", [alert.id])
        key: tuple[Any, ...] = (None,) * 4 if alert.bucket is None else msgspec.structs.astuple(alert.bucket)
        connection.execute(
            "INSERT INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                alert.id, alert.kind, alert.severity, alert.engine, *key, alert.state, alert.pending_since,
                alert.started, alert.ended, sentence(alert), msgspec.json.encode(alert).decode(),
            ],
        )  # fmt: skip
    for note in changes.notes:
        connection.execute(
            "INSERT INTO remarks VALUES (?, ?, ?, ?)",
            [note.ts, note.kind, note.text, msgspec.json.encode(note).decode()],
        )


def read_alerts(connection: duckdb.DuckDBPyConnection, since: float = 0.0) -> list[Alert]:
    """Alerts that fired and were not over before `since`, and pending ones, in the order of their beginning."""
    rows = connection.execute(
        """SELECT record FROM alerts WHERE (started IS NOT NULL OR state = 'pending')
             AND (ended IS NULL OR ended >= ?) ORDER BY coalesce(started, pending_since), id""",
        [since],
    ).fetchall()
    return [msgspec.json.decode(record, type=Alert) for (record,) in rows]


def all_alerts(connection: duckdb.DuckDBPyConnection) -> list[Alert]:
    """Every alert there ever was, those that never fired too, in the order of their beginning."""
    rows = connection.execute("SELECT record FROM alerts ORDER BY pending_since, id").fetchall()
    return [msgspec.json.decode(record, type=Alert) for (record,) in rows]


def orphaned(connection: duckdb.DuckDBPyConnection, ts: float) -> list[Alert]:
    """Alerts that were pending or firing when their judge was lost, as they ended at `ts`."""
    rows = connection.execute("SELECT record FROM alerts WHERE state <> 'resolved' ORDER BY id").fetchall()
    cause = Cause("gone", "what the judge knew was lost", ts)
    return [
        msgspec.structs.replace(alert, state="resolved", ended=ts, causes=[*alert.causes, cause])
        for alert in (msgspec.json.decode(record, type=Alert) for (record,) in rows)
    ]


def next_number(connection: duckdb.DuckDBPyConnection) -> int:
    """One more than any alert has."""
    (last,) = only_row(connection, "SELECT coalesce(max(id), 0) FROM alerts")
    return int(last) + 1


def read_remarks(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[Note]:
    """Remarks of moments in (start, end], in order."""
    rows = connection.execute("SELECT record FROM remarks WHERE ts > ? AND ts <= ? ORDER BY ts", [start, end])
    return [msgspec.json.decode(record, type=Note) for (record,) in rows.fetchall()]


def last_remark(connection: duckdb.DuckDBPyConnection) -> float:
    """Moment of the last remark, Unix seconds; 0 where there is none."""
    (moment,) = only_row(connection, "SELECT coalesce(max(ts), 0) FROM remarks")
    return float(moment)


def recent_history(connection: duckdb.DuckDBPyConnection, window: float | None) -> AlertHistory:
    """Those that were not over `window` seconds before the end of the record; None: all."""
    if window is None:
        return history(connection)
    (last,) = only_row(connection, "SELECT greatest(max(ts), (SELECT max(up_to) FROM judge)) FROM steps")
    return history(connection, 0.0 if last is None else last - window)


def history(connection: duckdb.DuckDBPyConnection, since: float = 0.0) -> AlertHistory:
    """All that fired, pending ones included."""
    return AlertHistory(alerts=[reported(alert) for alert in read_alerts(connection, since)])
