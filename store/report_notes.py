"""What a reader of a report should know beside its figures: of the stretch that it covers, and of no other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb

from store import progress
from store.alerts import read_remarks


def report_notes(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[str]:
    """Of (start, end], Unix seconds: lines kept as they were told, restarts and version pushes, what the judge
    remarked, and what is no longer kept of it."""
    return [
        *_told(connection, start, end),
        *_restarts(connection, start, end),
        *(remark.text for remark in read_remarks(connection, start, end)),
        *_gone(connection, start),
    ]


def _told(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[str]:
    rows = connection.execute(
        "SELECT text FROM notes WHERE ts IS NULL OR (ts > ? AND coalesce(since, ts) <= ?)", [start, end]
    )
    return [text for (text,) in rows.fetchall()]


def _restarts(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> Iterator[str]:
    runs = connection.execute(
        """SELECT engine, ts, model_version, lag(model_version) OVER (PARTITION BY engine ORDER BY id) AS before
           FROM engines QUALIFY before IS NOT NULL AND ts > ? AND ts <= ? ORDER BY ts""",
        [start, end],
    ).fetchall()
    for engine, ts, version, before in runs:
        changed = "" if version == before else f", now {version} (before: {before})"
        yield f"{engine} restarted at {ts:.3f}{changed}"


def _gone(connection: duckdb.DuckDBPyConnection, start: float) -> Iterator[str]:
    raw = progress.up_to(connection, progress.RAW_FROM)
    if max(start, 0.0) < raw:
        yield (
            f"steps up to {written(raw)} are no longer kept one by one: figures there are of whole cells, and their "
            "transitions and mismatches are not listed"
        )
    sequences = progress.up_to(connection, progress.SEQUENCES_FROM)
    if max(start, 0.0) < sequences and _anything_before(connection, sequences):
        yield f"sequences that ended before {written(sequences)} are no longer kept: intervals know nothing of them"


def _anything_before(connection: duckdb.DuckDBPyConnection, ts: float) -> bool:
    return bool(connection.execute("FROM rollup_1h WHERE cell < ? LIMIT 1", [ts]).fetchall())


def written(ts: float) -> str:
    """A moment as notes name it, in UTC."""
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
