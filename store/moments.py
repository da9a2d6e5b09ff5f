"""What a store knew at a moment: which engines had started, what of the telemetry was missing by then."""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import msgspec

from engine.records import EngineRecord
from store.buckets import UNATTRIBUTED
from store.sql import first_row, only_row


class StartedEngine(NamedTuple):
    """An engine as its last start before a moment shows it."""

    record: EngineRecord
    run: int
    restarts: int


class Losses(NamedTuple):
    gaps: int
    frames_lost: int
    quarantined: int
    unattributed: int
    """Counted to the last whole 10 s."""


class Span(NamedTuple):
    """Start of the first step to the end of the last, Unix seconds."""

    start: float
    end: float


def recorded_span(connection: duckdb.DuckDBPyConnection) -> Span | None:
    """What can be gone to: where no step was made or kept, from the first engine's start on. None: nothing."""
    first, last = only_row(connection, "SELECT min(ts - duration_ms / 1000), max(ts) FROM steps")
    if first is None:
        first, last = only_row(connection, "SELECT min(ts), max(ts) FROM engines")
    return None if first is None else Span(float(first), float(last))


def started_engines(connection: duckdb.DuckDBPyConnection, ts: float) -> list[StartedEngine]:
    """Engines that had started by `ts`, by name."""
    rows = connection.execute(
        """SELECT arg_max(record, id), max(id), count(*) FROM engines WHERE ts <= ? GROUP BY engine ORDER BY engine""",
        [ts],
    ).fetchall()
    return [StartedEngine(msgspec.json.decode(text, type=EngineRecord), run, many - 1) for text, run, many in rows]


def dark_engines(connection: duckdb.DuckDBPyConnection, ts: float) -> dict[str, str | None]:
    """Engines of which nothing is known at `ts`, and why as far as that was recorded."""
    rows = connection.execute("SELECT engine, reason FROM gaps WHERE since < $ts AND ts > $ts", {"ts": ts}).fetchall()
    return dict(rows)


def losses(connection: duckdb.DuckDBPyConnection, ts: float) -> Losses:
    """What was missing or set aside by `ts`."""
    gaps, lost, quarantined, unattributed = only_row(
        connection,
        """SELECT count(*), coalesce(sum(frames_lost), 0)::BIGINT,
             (SELECT count(*) FROM quarantine WHERE ts <= $ts)
               + (SELECT coalesce(sum(count), 0)::BIGINT FROM quarantine_1h WHERE cell <= $ts - 3600),
             (SELECT coalesce(sum(count), 0)::BIGINT FROM rollup_10s
              WHERE cell <= $ts - 10 AND bucket IN (SELECT id FROM buckets WHERE workload = $nobody))
           FROM gaps WHERE ts <= $ts""",
        {"ts": ts, "nobody": UNATTRIBUTED},
    )
    return Losses(int(gaps), int(lost), int(quarantined), int(unattributed))


def last_step_before(connection: duckdb.DuckDBPyConnection, ts: float) -> tuple[str, int] | None:
    """Engine and number of the last step that had ended by `ts`."""
    found = first_row(
        connection,
        """SELECT engine, number FROM steps JOIN engines e ON engine_run = e.id
           WHERE steps.id = (SELECT arg_max(id, ts) FROM steps WHERE ts <= ?)""",
        [ts],
    )
    return None if found is None else (str(found[0]), int(found[1]))


def step_end(connection: duckdb.DuckDBPyConnection, ts: float, count: int) -> float | None:
    """End of the `count`-th step after `ts`, before it where negative; of the last there is where there are fewer."""
    later, order, best = (">", "ASC", "max") if count > 0 else ("<", "DESC", "min")
    (found,) = only_row(
        connection,
        f"""SELECT {best}(ts) FROM (SELECT DISTINCT ts FROM steps WHERE ts {later} $ts ORDER BY ts {order}
            LIMIT $many)""",
        {"ts": ts, "many": abs(count)},
    )
    return None if found is None else float(found)


def moment_of_work(connection: duckdb.DuckDBPyConnection, ts: float, rows: int) -> float | None:
    """End of the step by which about `rows` rows have come after `ts`; None where fewer are left."""
    found = first_row(
        connection,
        """SELECT ts FROM (SELECT ts, sum(decode_rows + 1) OVER (ORDER BY ts, id) AS so_far
             FROM (SELECT ts, id, decode_rows FROM steps WHERE ts > $ts ORDER BY ts, id LIMIT $rows))
           WHERE so_far >= $rows ORDER BY ts LIMIT 1""",
        {"ts": ts, "rows": rows},
    )
    return None if found is None else float(found[0])
