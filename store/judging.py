"""Feeds the judge from a store's rollups, cell by cell in record time, and keeps what it finds.

The judge sees only what is rolled up, so a replay, a restarted station and a live one judge alike: whatever was judged
after the last save is judged again from the same cells, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import duckdb
import msgspec

from engine.step_time.model import StepModel
from store import progress
from store.alerts import write_changes
from store.judge.judge import Judge
from store.judge.settings import JudgeSettings
from store.judge_cells import judged_cells
from store.judge_events import events
from store.levels import CELL_SECONDS
from store.load import Runner
from store.rollup import roll_up, rolled_up_to
from store.sql import first_row
from store.step_models import step_models
from store.stored import Stored

SAVE_SECONDS: Final = 600.0
"""The judge's memory is written so often, in record time: it may be megabytes."""
CELLS_AT_ONCE: Final = 360


def judge_all(connection: duckdb.DuckDBPyConnection, settings: JudgeSettings | None = None) -> None:
    """Judge a record that is complete, e.g. a trace, to its end."""
    roll_up(connection, math.inf)
    judging = Judging(connection, settings)
    judging.catch_up()
    judging.save()


class Judging:
    """One judge over one store. `judge` may be asked and told by its owner between calls."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, settings: JudgeSettings | None = None) -> None:
        self._connection = connection
        self._names = dict(Stored(connection).buckets())
        self._settings = settings or JudgeSettings()
        found = first_row(connection, "SELECT up_to, state FROM judge")
        self.judge, self._up_to = self._restored(found)
        self._saved = self._up_to
        self._models: Mapping[Runner, StepModel] = {}

    def catch_up(self, models: Mapping[Runner, StepModel] | None = None) -> None:
        """Judge every cell that was rolled up since the last time, and keep what came of it.

        Raises:
            duckdb.Error: it can't be written; the next call tries again.
        """
        end = rolled_up_to(self._connection)
        if end <= self._up_to:
            return
        self._models = step_models(self._connection) if models is None else models
        self._names.update(Stored(self._connection).buckets())
        start = self._up_to or self._first_cell(end)
        while start < end:
            stop = min(end, start + CELLS_AT_ONCE * CELL_SECONDS)
            self._judge(start, stop)
            start = stop
        self._keep(end)

    def save(self) -> None:
        """Write the judge's memory now, e.g. before the end."""
        self._keep(self._up_to, save=True)

    def _restored(self, found: tuple[Any, ...] | None) -> tuple[Judge, float]:
        if found is None:
            return Judge(self._names, self._settings), 0.0
        return Judge.restore(msgspec.json.decode(found[1]), self._names, self._settings), float(found[0])

    def _first_cell(self, end: float) -> float:
        found = first_row(self._connection, "SELECT min(cell) FROM rollup_10s")
        return end if found is None or found[0] is None else float(found[0])

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

    def _keep(self, up_to: float, *, save: bool = False) -> None:
        changes = self.judge.changes()
        save = save or up_to - self._saved >= SAVE_SECONDS
        self._connection.execute("BEGIN")
        try:
            write_changes(self._connection, changes)
            if save:
                state = msgspec.json.encode(self.judge.state()).decode()
                self._connection.execute("DELETE FROM judge")
                self._connection.execute("INSERT INTO judge VALUES (?, ?)", [up_to, state])
            progress.move(self._connection, "judged", up_to)
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._up_to = up_to
        if save:
            self._saved = up_to
