"""Feeds the judge from a store's rollups, cell by cell in record time, and keeps what it finds.

The judge sees only what is rolled up, so a replay, a restarted station and a live one judge alike: whatever was judged
after the last save is judged again from the same cells, with the same result.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

import duckdb
import msgspec
import zstandard

from engine.step_time.model import StepModel
from store import progress
from store.alerts import next_number, orphaned, write_changes
from store.judge.alerts import Changes
from store.judge.judge import Judge
from store.judge.memory import empty_memory
from store.judge.settings import JudgeSettings
from store.judge_cells import judged_cells
from store.judge_events import events
from store.levels import CELL_SECONDS, FINEST
from store.load import Runner
from store.rollup import roll_up, rolled_up_to
from store.sql import first_row, only_row
from store.step_models import step_models
from store.stored import Stored

log = logging.getLogger(__name__)

SAVE_SECONDS: Final = 600.0
"""The judge's memory is written so often, in record time: it may be megabytes."""
SPANS: Final = (86_400.0, 21_600.0, 3600.0, 600.0)
"""The tables are read for so many seconds at once: for the longest with at most …"""
ENTRIES_AT_ONCE: Final = 200_000
"""… so many totals of sequences in them."""
_TIMES: Final = (
    ("rollup_10s", "cell"), ("steps", "ts"), ("quarantine", "ts"), ("gaps", "ts"), ("engines", "ts"),
    ("controls", "ts"),
)  # fmt: skip
"""Tables that the judge is fed from, and the column that holds the time."""
_ZSTD_LEVEL: Final = 1


def judge_all(connection: duckdb.DuckDBPyConnection, settings: JudgeSettings | None = None) -> None:
    """Judge a record that is complete, e.g. a trace, to its end."""
    roll_up(connection, math.inf)
    judging = Judging(connection, settings)
    judging.finish()


class Judging:
    """One judge over one store. `judge` may be asked and told by its owner between calls."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, settings: JudgeSettings | None = None) -> None:
        self._connection = connection
        self._names = dict(Stored(connection).buckets())
        self._settings = settings or JudgeSettings()
        self._waiting = Changes([], [])
        found = first_row(connection, "SELECT up_to, state FROM judge")
        self._up_to = 0.0 if found is None else float(found[0])
        self.judge = Judge(self._names, self._settings) if found is None else self._restored(found[1])
        self._saved = self._kept = self._up_to
        self._models: Mapping[Runner, StepModel] = {}

    def catch_up(self, models: Mapping[Runner, StepModel] | None = None) -> None:
        """Judge every cell that was rolled up since the last time, and keep what came of it.

        Raises:
            duckdb.Error: it can't be read or written; the next call goes on where this one came to.
        """
        self._catch_up(rolled_up_to(self._connection), models)

    def finish(self) -> None:
        """Nothing more will come: judge to the very end, also the windows that are still open, and save.

        Raises:
            duckdb.Error: as `catch_up`.
        """
        self._catch_up(max(rolled_up_to(self._connection), _end(self._connection)))
        self.judge.finish(self._up_to)
        self.save()

    def save(self) -> None:
        """Write the judge's memory now, e.g. before the end.

        Raises:
            duckdb.Error: it can't be written; the next call tries again.
        """
        self._keep(save=True)

    def _catch_up(self, end: float, models: Mapping[Runner, StepModel] | None = None) -> None:
        if end > self._up_to:
            self._models = step_models(self._connection) if models is None else models
            self._names.update(Stored(self._connection).buckets())
        while self._up_to < end:
            start, stop = self._up_to, end
            if end - start > SPANS[-1]:  # else, as in a station, there is nothing to choose
                start = _next(self._connection, start, end)
                stop = self._stop(start, end)
            self.judge.advance(start)
            self._judge(start, stop)
            self._up_to = stop
        if self._up_to > self._kept or self._waiting:
            self._keep(save=self._up_to - self._saved >= SAVE_SECONDS)

    def _stop(self, start: float, end: float) -> float:
        """How far to read from `start`: all at once would be too much, and every look at the tables costs time."""
        for span in SPANS:
            stop = min(end, start + span)
            (entries,) = only_row(
                self._connection,
                "SELECT count(*) FROM sequence_rollup_10s WHERE cell >= ? AND cell < ?",
                [start, stop],
            )
            if entries <= ENTRIES_AT_ONCE:
                break
        return stop

    def _restored(self, state: bytes) -> Judge:
        """The judge that was saved. One that can't be read is replaced by a new one, and its open alerts are over."""
        try:
            return Judge.restore(_unpacked(state), self._names, self._settings)
        except (ValueError, zstandard.ZstdError) as error:
            log.warning("what the judge knew can't be read, it begins again: %s", error)
        self._waiting = Changes(orphaned(self._connection, self._up_to), [])
        memory = empty_memory()
        memory.book.next_id = next_number(self._connection)
        return Judge(self._names, self._settings, memory)

    def _judge(self, start: float, stop: float) -> None:
        happened = events(self._connection, start, stop)
        place = 0
        for cell, sequences, load in judged_cells(self._connection, start, stop, self._models):
            while place < len(happened) and happened[place].ts < cell + CELL_SECONDS:
                self.judge.event(happened[place].event)
                place += 1
            if sequences is not None:
                self.judge.sequences(sequences)
            self.judge.load(load)
        for later in happened[place:]:
            self.judge.event(later.event)
        self.judge.advance(stop)

    def _keep(self, *, save: bool) -> None:
        """Write what is new. Until it is written it waits: the judge tells it only once."""
        self._waiting = self._waiting.followed_by(self.judge.changes())
        self._connection.execute("BEGIN")
        try:
            write_changes(self._connection, self._waiting)
            if save:
                self._connection.execute("DELETE FROM judge")
                self._connection.execute("INSERT INTO judge VALUES (?, ?)", [self._up_to, _packed(self.judge.state())])
            progress.move(self._connection, "judged", self._up_to)
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._waiting, self._kept = Changes([], []), self._up_to
        if save:
            self._saved = self._up_to


def _next(connection: duckdb.DuckDBPyConnection, since: float, end: float) -> float:
    """Start of the first cell from `since` on that anything is known of; `end` where there is none.

    A clock that was wrong for a moment leaves decades with nothing in them.
    """
    moments = " UNION ALL ".join(f"SELECT min({time}) AS ts FROM {table} WHERE {time} >= $1" for table, time in _TIMES)
    (first,) = only_row(connection, f"SELECT min(ts) FROM ({moments})", [since])
    return end if first is None else min(end, max(since, FINEST.floor(first)))


def _end(connection: duckdb.DuckDBPyConnection) -> float:
    """End of the last cell that anything is known of."""
    moments = " UNION ALL ".join(f"SELECT max({time}) AS ts FROM {table}" for table, time in _TIMES)
    (last,) = only_row(connection, f"SELECT max(ts) FROM ({moments})")
    return 0.0 if last is None else FINEST.floor(last) + FINEST.seconds


def _packed(state: dict[str, Any]) -> bytes:
    """Arrays of zeros and of small numbers for the most part: little of it is left."""
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(msgspec.json.encode(state))


def _unpacked(state: bytes) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(zstandard.ZstdDecompressor().decompress(state))
    return plain
