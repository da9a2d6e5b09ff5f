"""Feeds the judge from a store's rollups, cell by cell in record time, and keeps what it finds.

The judge sees only what is rolled up, so a replay, a restarted station and a live one judge alike: whatever was judged
after the last save is judged again from the same cells, with the same result.
"""

from __future__ import annotations

import logging
import math
from typing import Final

import duckdb
import zstandard

from store import progress
from store.alerts import next_number, orphaned, write_changes
from store.judge.alerts import Changes
from store.judge.judge import Judge
from store.judge.memory import empty_memory
from store.judge.settings import JudgeSettings
from store.judge_cells import judged_cells
from store.judge_events import Happened, events
from store.judge_kept import pack, unpack
from store.judged_models import JudgedModels
from store.levels import CELL_SECONDS, FINEST
from store.rollup import roll_up, rolled_up_to
from store.sql import first_row, only_row
from store.state_records import begin_with, found_state
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


def judge_all(connection: duckdb.DuckDBPyConnection, settings: JudgeSettings | None = None) -> None:
    """Judge a record that is complete, e.g. a trace, to its end."""
    roll_up(connection, math.inf)
    judging = Judging(connection, settings)
    judging.finish()


class Judging:
    """One judge over one store. `judge` may be asked and told by its owner between calls.

    A trace that begins with what its station knew is judged on from there, as soon as that record is in the store.

    Args:
        settings: None for those of the station that made such a record, else the defaults.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, settings: JudgeSettings | None = None) -> None:
        self._connection = connection
        self._names = dict(Stored(connection).buckets())
        self._wanted = settings
        self._settings = settings or JudgeSettings()
        self._waiting = Changes([], [])
        self._up_to = 0.0
        self._models = JudgedModels(connection)
        self._given = False
        self.judge = Judge(self._names, self._settings)
        self._load()

    @property
    def settings(self) -> JudgeSettings:
        return self._settings

    @property
    def models(self) -> JudgedModels:
        """What the next cells are judged by."""
        self._models.refresh()
        return self._models

    @property
    def up_to(self) -> float:
        """Cells before this moment are judged, Unix seconds."""
        return self._up_to

    def catch_up(self) -> None:
        """Judge every cell that was rolled up since the last time, and keep what came of it.

        Raises:
            duckdb.Error: it can't be read or written; the next call goes on where this one came to.
            Exception: a fault of the judge itself; the next call leaves out the stretch that showed it.
        """
        self._catch_up(rolled_up_to(self._connection))

    def finish(self) -> None:
        """Nothing more will come: judge to the very end, also the windows that are still open, and save.

        A record that a station went on after is judged as far as that had come, for whole cells: its windows ended
        later.

        Raises:
            duckdb.Error: as `catch_up`.
        """
        end = _end(self._connection)
        self._look_for_state()
        if self._given:
            self._catch_up(end - FINEST.seconds)
        else:
            self._catch_up(max(rolled_up_to(self._connection), end))
            self.judge.finish(self._up_to)
        self.save()

    def save(self) -> None:
        """Write the judge's memory now, e.g. before the end.

        Raises:
            duckdb.Error: it can't be written; the next call tries again.
        """
        self._keep(save=True)

    def _load(self) -> None:
        """Go on with what was saved here."""
        state = found_state(self._connection)
        if state is not None:
            self._given = True
            self._settings = self._wanted or state.settings
            self._models = JudgedModels(self._connection, state.known())
        found = first_row(self._connection, "SELECT up_to, state FROM judge")
        if found is None and state is not None:
            begin_with(self._connection, state)
            found = first_row(self._connection, "SELECT up_to, state FROM judge")
        if found is not None:
            self._up_to = float(found[0])
            self.judge = self._restored(found[1])
        self._saved = self._kept = self._up_to

    def _look_for_state(self) -> None:
        """What the station knew that recorded this may have come after the first look."""
        if not self._up_to and not self._given and found_state(self._connection) is not None:
            self._names.update(Stored(self._connection).buckets())
            self._load()

    def _catch_up(self, end: float) -> None:
        if end > self._up_to:
            self._look_for_state()
            self._names.update(Stored(self._connection).buckets())
            self._models.refresh()
        while self._up_to < end:
            start, stop = self._up_to, end
            if end - start > SPANS[-1]:  # else, as in a station, there is nothing to choose
                start = _next(self._connection, start, end)
                stop = self._stop(start, end)
            try:
                self.judge.advance(start)
                self._judge(start, stop)
            except duckdb.Error:
                raise  # nothing was read, so nothing was added
            except Exception:
                self._up_to = stop  # some of it was added already: a stretch unjudged is better than one counted twice
                raise
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
            return Judge.restore(unpack(state), self._names, self._settings)
        except (ValueError, zstandard.ZstdError) as error:
            log.warning("what the judge knew can't be read, it begins again: %s", error)
        self._waiting = Changes(orphaned(self._connection, self._up_to), [])
        memory = empty_memory()
        memory.book.next_id = next_number(self._connection)
        return Judge(self._names, self._settings, memory)

    def _judge(self, start: float, stop: float) -> None:
        happened = events(self._connection, start, stop)
        place = 0
        for cell, sequences, load in judged_cells(self._connection, start, stop, self._models.model):
            while place < len(happened) and happened[place].ts < cell + CELL_SECONDS:
                self._happened(happened[place], start)
                place += 1
            if sequences is not None:
                self.judge.sequences(sequences)
            self.judge.load(load)
        for later in happened[place:]:
            self._happened(later, start)
        self.judge.advance(stop)

    def _happened(self, what: Happened, start: float) -> None:
        """Windows that are over by then come first, however much is judged at once."""
        self.judge.advance(FINEST.floor(max(what.ts, start)))
        self.judge.event(what.event)

    def _keep(self, *, save: bool) -> None:
        """Write what is new. Until it is written it waits: the judge tells it only once."""
        self._waiting = self._waiting.followed_by(self.judge.changes())
        self._connection.execute("BEGIN")
        try:
            write_changes(self._connection, self._waiting)
            if save:
                self._connection.execute("DELETE FROM judge")
                self._connection.execute("INSERT INTO judge VALUES (?, ?)", [self._up_to, pack(self.judge.state())])
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
