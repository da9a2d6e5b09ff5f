"""What a store knew at a moment: which engines had started, what of the telemetry was missing by then."""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import msgspec

from engine.records import LIMITS, EngineRecord
from store.buckets import UNATTRIBUTED
from store.record_tables import PROBES
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
    """Unix seconds."""

    start: float
    end: float
    steps: bool
    """Whether any step lies in it."""


def played_span(connection: duckdb.DuckDBPyConnection) -> Span | None:
    """From the start of the first step to the end of the last record; where no step was made or kept, from the start
    of the first engine on. None: nothing is recorded."""
    first, start, *ends = only_row(
        connection,
        """SELECT min(ts - duration_ms / 1000), (SELECT min(ts) FROM engines), max(ts), (SELECT max(ts) FROM engines),
             (SELECT max(ts) FROM finishes), (SELECT max(ts) FROM controls), (SELECT max(ts) FROM gaps) FROM steps""",
    )
    begin = start if first is None else first
    last = max((float(end) for end in ends if end is not None), default=None)
    return None if begin is None or last is None else Span(float(begin), last, first is not None)


def started_engines(connection: duckdb.DuckDBPyConnection, ts: float) -> list[StartedEngine]:
    """Engines that had started by `ts`, by name."""
    rows = connection.execute(
        """SELECT arg_max(record, id), max(id), count(*) FROM engines WHERE ts <= ? GROUP BY engine ORDER BY engine""",
        [ts],
    ).fetchall()
    return [StartedEngine(msgspec.json.decode(text, type=EngineRecord), run, many - 1) for text, run, many in rows]


def every_start(connection: duckdb.DuckDBPyConnection) -> list[EngineRecord]:
    """Every start of an engine, in the order of time."""
    rows = connection.execute("SELECT record FROM engines ORDER BY ts, id").fetchall()
    return [msgspec.json.decode(text, type=EngineRecord) for (text,) in rows]


def told_notes(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Lines that were kept for whoever reads the figures."""
    return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY rowid").fetchall()]


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


class StepThen(NamedTuple):
    """A step as its frame told it."""

    number: int
    ts: float
    running: int
    k_draft: int
    limit: str
    policy: int
    probe: str | None


def steps_until(connection: duckdb.DuckDBPyConnection, run: int, after: int, limit: int, ts: float) -> list[StepThen]:
    """At most `limit` of the newest steps of a run by `ts` with a number above `after`, oldest first."""
    rows = connection.execute(
        """SELECT number, ts, running, k_draft, limit_draft, policy, probe FROM steps
           WHERE engine_run = ? AND number > ? AND ts <= ? ORDER BY id DESC LIMIT ?""",
        [run, after, ts, limit],
    ).fetchall()
    return [
        StepThen(number, ended, running, k, LIMITS[term], policy, None if probe is None else PROBES[probe])
        for number, ended, running, k, term, policy, probe in reversed(rows)
    ]


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
