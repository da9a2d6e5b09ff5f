"""Brings live windows to any moment of a store: onward by the rows in between where they are few, else afresh from the
rollups. Going back is as quick as going on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb

from engine.step_time.model import StepModel
from store.buckets import BucketName
from store.last_steps import finished_since, live_sequences, restore_loads
from store.later_rows import add_later, rows_between
from store.load import Runner
from store.preload import preload
from store.sql import only_row
from store.step_models import step_models
from store.stored import Stored
from store.windows import LiveWindows

FEW_ROWS: Final = 20_000
"""Up to about so many rows are added one by one; more take longer than to begin afresh from the rollups."""
RENEW_SECONDS: Final = 0.05
"""For bringing buckets up to date: nothing else has to be done meanwhile."""


class Moving:
    """Windows over the store that `connection` reads; `windows` stand at `ts`, Unix seconds of the record."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, *, fixed: str | None = None, renew_seconds: float = RENEW_SECONDS
    ) -> None:
        self._connection = connection
        self._fixed = fixed
        self._renew_seconds = renew_seconds
        self._models: Mapping[Runner, StepModel] = {}
        self._names: dict[int, BucketName] = {}
        self._runs: dict[str, tuple[int, float]] = {}
        self.windows = LiveWindows(fixed, renew_seconds)
        self.ts = 0.0
        self.renew()

    def renew(self, *, afresh: bool = False) -> None:
        """The store holds more than before: step times are fitted anew, of all there is.

        Args:
            afresh: rows may have come for moments that were shown already.
        """
        self._models = step_models(self._connection)
        self.windows.use_models(self._models)
        if afresh:
            self.ts = 0.0

    def to(self, ts: float) -> None:
        """Bring the windows to `ts`."""
        if ts == self.ts:
            return
        near = self.ts < ts and self.ts > 0 and rows_between(self._connection, self.ts, ts) <= FEW_ROWS
        if near:
            self._go_on(ts)
        else:
            self.afresh(ts)

    def afresh(self, ts: float) -> None:
        """Make the windows of `ts` from the store alone."""
        self._names = dict(Stored(self._connection).buckets())
        windows = LiveWindows(self._fixed, self._renew_seconds)
        preload(windows, self._connection, ts, self._models)
        (began,) = only_row(self._connection, "SELECT min(ts - duration_ms / 1000) FROM steps WHERE ts <= ?", [ts])
        if began is not None:
            windows.recorded_since(began)
        self.windows, self._runs = windows, {}
        self._take_loads(0.0, ts)
        self.ts = ts

    def _go_on(self, ts: float) -> None:
        self._names.update(Stored(self._connection).buckets())
        add_later(self.windows, self._connection, self.ts, ts, self._names)
        self._take_loads(self.ts, ts)
        self.ts = ts

    def _take_loads(self, since: float, until: float) -> None:
        """What engines do; one that is idle makes no steps, its load ends with its sequences."""
        for last in restore_loads(self.windows, self._connection, since, until):
            self._runs[last.engine] = last.run, last.step.ts
        present = self._present(until)
        for engine, (run, ended) in self._runs.items():
            if present.get(engine, run) != run:
                self.windows.live_sequences(engine, 0)
            elif finished_since(self._connection, run, ended, until):
                self.windows.live_sequences(engine, sum(live_sequences(self._connection, run, until).values()))

    def _present(self, ts: float) -> dict[str, int]:
        """The run of each engine that had started last."""
        rows = self._connection.execute(
            "SELECT engine, arg_max(id, id) FROM engines WHERE ts <= ? GROUP BY engine", [ts]
        )
        return dict(rows.fetchall())
