"""What the operator and the policy did, newest first, as it was recorded."""

from __future__ import annotations

from typing import Any, Final

import duckdb
import msgspec

from engine.records import ControlRecord

SCORE: Final = "score"
"""Action of a record that holds an earlier decision against what happened: no action of its own."""

_COLUMNS: Final = "ts, actor, action, workload, before, after, policy, why, numbers"
_ORDER: Final = "ORDER BY ts DESC, rowid DESC"


def recent_controls(
    connection: duckdb.DuckDBPyConnection, limit: int, workload: str | None = None
) -> list[ControlRecord]:
    """All records since the `limit`-th newest action, those of `workload` counted where it is named. Scores and what
    others did meanwhile come along: whoever shows an action needs them to say what became of it."""
    query = f"""WITH wanted AS (SELECT ts FROM controls
        WHERE action <> '{SCORE}' AND ($workload IS NULL OR workload = $workload) {_ORDER} LIMIT $limit)
      SELECT {_COLUMNS} FROM controls WHERE ts >= (SELECT min(ts) FROM wanted) {_ORDER}"""
    return [_control(row) for row in connection.execute(query, {"workload": workload, "limit": limit}).fetchall()]


def all_controls(connection: duckdb.DuckDBPyConnection) -> list[ControlRecord]:
    """Every record there is, in the order of time."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM controls ORDER BY ts, rowid").fetchall()
    return [_control(row) for row in rows]


def controls_since(connection: duckdb.DuckDBPyConnection, policy: int) -> list[ControlRecord]:
    """All records since the one that made policy version `policy`, that one included; none where it isn't known."""
    query = f"""SELECT {_COLUMNS} FROM controls
      WHERE ts >= (SELECT min(ts) FROM controls WHERE policy = ?) {_ORDER}"""
    return [_control(row) for row in connection.execute(query, [policy]).fetchall()]


def _control(row: tuple[Any, ...]) -> ControlRecord:
    ts, actor, action, workload, before, after, policy, why, numbers = row
    return ControlRecord(ts, actor, action, workload, _json(before), _json(after), policy, why, _json(numbers))


def _json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
