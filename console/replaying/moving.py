"""Brings windows to any moment of a store: onward by the rows in between where they are few, else straight from the
rollups. Going back is as quick as going on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb

from engine.step_time.model import StepModel
from store.buckets import BucketName
from store.last_steps import finished_since, last_steps, live_sequences
from store.later_rows import add_later, rows_between
from store.load import Runner
from store.preload import preload
from store.sql import only_row
from store.step_models import step_models
from store.still_windows import StillWindows
from store.stored import Stored
from store.windows import LiveWindows

FEW_ROWS: Final = 20_000
"""Up to about so many rows are added one by one; more take longer than to begin afresh from the rollups."""
RENEW_SECONDS: Final = 0.05
"""For bringing buckets up to date: nothing else has to be done meanwhile."""


class Moving:
    """Windows over the store that `connection` reads; `windows` stand at `ts`, Unix seconds of the record."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, renew_seconds: float = RENEW_SECONDS) -> None:
        self._connection = connection
        self._renew_seconds = renew_seconds
        self._models: Mapping[Runner, StepModel] = {}
        self._names: dict[int, BucketName] = {}
        self._runs: dict[str, tuple[int, float]] = {}
        self.windows: LiveWindows | StillWindows = LiveWindows(renew_seconds)
        self.ts = 0.0
        self.renew()

    @property
    def models(self) -> Mapping[Runner, StepModel]:
        """Step times that rows are held against."""
        return self._models

    def renew(self, *, afresh: bool = False) -> None:
        """The store holds more than before: step times are fitted anew, of all there is.

        Args:
            afresh: rows may have come for moments that were shown already.
        """
        self._models = step_models(self._connection)
        self.windows.use_models(self._models)
        if afresh:
            self.ts = 0.0

    def to(self, ts: float, ahead: float = 0.0) -> None:
        """Bring the windows to `ts`.

        Args:
            ahead: seconds by which they will have to go on next; 0 where nobody knows that they will.
        """
        if ts == self.ts and (ahead == 0 or isinstance(self.windows, LiveWindows)):
            return
        if isinstance(self.windows, LiveWindows) and 0 < self.ts <= ts and self._near(self.ts, ts):
            self._go_on(self.windows, ts)
        elif ahead > 0 and self._near(ts, ts + ahead):
            self._prepare(ts)
        else:
            self._stand(ts)

    def _near(self, since: float, until: float) -> bool:
        return rows_between(self._connection, since, until) <= FEW_ROWS

    def _stand(self, ts: float) -> None:
        """Windows of this moment alone: the quickest way there, and none onward."""
        self.windows, self._runs = StillWindows(self._connection, ts, self._models), {}
        self._take_loads(0.0, ts)

    def _prepare(self, ts: float) -> None:
        """Windows of this moment that can go on."""
        self._names = dict(Stored(self._connection).buckets())
        windows = LiveWindows(self._renew_seconds)
        preload(windows, self._connection, ts, self._models)
        (began,) = only_row(self._connection, "SELECT min(ts - duration_ms / 1000) FROM steps WHERE ts <= ?", [ts])
        if began is not None:
            windows.recorded_since(began)
        self.windows, self._runs = windows, {}
        self._take_loads(0.0, ts)

    def _go_on(self, windows: LiveWindows, ts: float) -> None:
        self._names.update(Stored(self._connection).buckets())
        add_later(windows, self._connection, self.ts, ts, self._names)
        self._take_loads(self.ts, ts)

    def _take_loads(self, since: float, until: float) -> None:
        """What engines do; one that is idle makes no steps, its load ends with its sequences."""
        for last in last_steps(self._connection, since, until):
            self.windows.restore_load(last.engine, last.record, last.step, last.matrix)
            self._runs[last.engine] = last.run, last.step.ts
        present = self._present(until)
        for engine, (run, ended) in self._runs.items():
            if present.get(engine, run) != run:
                self.windows.live_sequences(engine, 0)
            elif finished_since(self._connection, run, ended, until):
                self.windows.live_sequences(engine, sum(live_sequences(self._connection, run, until).values()))
        self.ts = until

    def _present(self, ts: float) -> dict[str, int]:
        """The run of each engine that had started last."""
        rows = self._connection.execute(
            "SELECT engine, arg_max(id, id) FROM engines WHERE ts <= ? GROUP BY engine", [ts]
        )
        return dict(rows.fetchall())
