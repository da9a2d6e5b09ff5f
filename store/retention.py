"""What may go when: raw steps and rows after two days or when they are too large, rollups after their level's time,
what was found and told after months.

Works in slices that take milliseconds, one after a flush, so it never holds up the append. Nothing raw goes before it
is rolled up. DuckDB gives the blocks of removed rows to new ones; the file itself does not shrink.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final

import duckdb
import msgspec

from store import progress
from store.levels import DAY, FINEST, LEVELS
from store.rollup import rolled_up_to
from store.sequence_totals import book_whole_sequences
from store.sql import only_row

SLICE_STEPS: Final = 4_000
"""Steps removed at once: about a million rows of a full batch."""
LEAST_RAW_SECONDS: Final = 600.0
"""What was recorded last is kept however little space there is."""
STRAY_SECONDS: Final = 7 * DAY
"""Sequences whose end was never seen are forgotten so long after they arrived."""


class Keep(msgspec.Struct, frozen=True):
    """How long and how much is kept."""

    raw_seconds: float = 2 * DAY
    raw_bytes: int = 5_000_000_000
    """Of the whole file in use: raw rows are removed while it is more."""
    free_share: float = 0.10
    """Of the disk: raw rows are removed while less is free and the file has no room of its own."""
    sequence_seconds: float = 2 * DAY
    """Then the totals of a sequence are kept as a whole, no longer by cells of 10 s."""
    totals_seconds: float = 60 * DAY
    told_seconds: float = 60 * DAY
    """Remarks, notes, and what others counted."""
    alert_seconds: float = 730 * DAY
    """Alerts that are over, and how many rows were quarantined."""


class Space(msgspec.Struct, frozen=True):
    """Bytes of the store's file in use and free inside it, and the share of its disk that is free."""

    used: int
    spare: int
    disk_free_share: float

    @property
    def short(self) -> bool:
        """Whether the file would have to grow for what comes next."""
        return self.spare < SPARE_BYTES


SPARE_BYTES: Final = 64 * 1024 * 1024


def space(connection: duckdb.DuckDBPyConnection, path: Path | None) -> Space:
    """Of a store without a file nothing is ever short."""
    if path is None:
        return Space(0, 2 * SPARE_BYTES, 1.0)
    size, used, free = only_row(
        connection,
        "SELECT block_size, used_blocks, free_blocks FROM pragma_database_size() "
        "WHERE database_name = current_database()",
    )
    disk = shutil.disk_usage(path.parent)
    return Space(used * size, free * size, disk.free / disk.total)


class Retention:
    """Removes what has had its time, a slice at a call, in transactions of its own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path | None, keep: Keep | None = None) -> None:
        self._connection = connection
        self._path = path
        self.keep = keep or Keep()
        self._booked = 0.0

    def slice(self, now: float) -> bool:
        """Remove a slice of what is due by `now` (Unix seconds, record time). Whether there was anything.

        Raises:
            duckdb.Error: it can't be written; nothing of the slice was removed.
        """
        crowded = self._crowded()
        kept = min(LEAST_RAW_SECONDS, self.keep.raw_seconds) if crowded else self.keep.raw_seconds
        self._connection.execute("BEGIN")
        try:
            did = _remove_raw(self._connection, min(now - kept, rolled_up_to(self._connection)), now)
            did = self._hourly(now) or did
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        if crowded and did:
            with contextlib.suppress(duckdb.Error):  # another transaction is open: the next slice asks again
                self._connection.execute("CHECKPOINT")  # only then are the blocks free, and counted so
        return did

    def _crowded(self) -> bool:
        found = space(self._connection, self._path)
        return found.used > self.keep.raw_bytes or (found.short and found.disk_free_share < self.keep.free_share)

    def _hourly(self, now: float) -> bool:
        """Once an hour of record time: what is removed by whole cells."""
        hour = now // 3600
        if hour <= self._booked:
            return False
        self._booked = hour
        book_whole_sequences(self._connection, FINEST.floor(now - self.keep.sequence_seconds))
        for level, coarser in zip(LEVELS, [*LEVELS[1:], None], strict=True):
            horizon = level.floor(now - level.keep_seconds)
            if coarser is not None:  # whole cells of the next level go, and none that it does not have yet
                horizon = coarser.floor(min(horizon, rolled_up_to(self._connection, coarser)))
            for table in (f"rollup_{level.name}", f"load_{level.name}"):
                _remove_cells(self._connection, table, horizon)
            progress.move(self._connection, f"kept_{level.name}", max(0.0, horizon))
        for table in ("sequence_totals", "step_times"):
            _remove_cells(self._connection, table, now - self.keep.totals_seconds)
        progress.move(self._connection, progress.SEQUENCES_FROM, max(0.0, now - self.keep.totals_seconds))
        for table in ("observations", "remarks", "notes"):
            self._connection.execute(f"DELETE FROM {table} WHERE ts < ?", [now - self.keep.told_seconds])
        self._connection.execute("DELETE FROM alerts WHERE ended < ?", [now - self.keep.alert_seconds])
        _remove_cells(self._connection, "quarantine_1h", now - self.keep.alert_seconds)
        return True


def _remove_raw(connection: duckdb.DuckDBPyConnection, horizon: float, now: float) -> bool:
    """Remove at most `SLICE_STEPS` of the oldest steps that ended before `horizon`, with their rows.

    Steps come nearly in the order of their time: among them are some that ended later, and these stay.
    """
    last, ts = only_row(
        connection,
        f"SELECT max(id), max(ts) FROM (SELECT id, ts FROM steps WHERE ts < ? ORDER BY id LIMIT {SLICE_STEPS})",
        [horizon],
    )
    if last is None:
        return False
    gone = f"<= {last} AND {{}} NOT IN (SELECT id FROM steps WHERE id <= {last} AND ts >= {horizon!r})"
    connection.execute(
        f"""INSERT INTO quarantine_1h SELECT (floor(ts / 3600) * 3600)::BIGINT, engine_run, reason, count(*)
            FROM quarantine WHERE step {gone.format("step")} GROUP BY ALL"""
    )
    for table in ("rows", "quarantine"):
        connection.execute(f"DELETE FROM {table} WHERE step {gone.format('step')}")
    connection.execute("DELETE FROM steps WHERE id <= ? AND ts < ?", [last, horizon])
    connection.execute("DELETE FROM sequences WHERE id IN (SELECT sequence FROM finishes WHERE ts < ?)", [ts])
    connection.execute("DELETE FROM sequences WHERE ts <= ? AND ts < ?", [ts, now - STRAY_SECONDS])
    connection.execute("DELETE FROM finishes WHERE ts < ?", [ts])
    progress.move(connection, progress.RAW_FROM, max(ts, progress.up_to(connection, progress.RAW_FROM)))
    progress.move(connection, progress.LAST_STEP, max(last, progress.up_to(connection, progress.LAST_STEP)))
    return True


def _remove_cells(connection: duckdb.DuckDBPyConnection, table: str, before: float) -> None:
    connection.execute(f"DELETE FROM {table} WHERE cell < ?", [before])
