"""Step-time models as the judge uses them: what was known at a moment of record time, and nothing that came later.

So a record is judged alike however often, how late and by whom: live, after a restart, in a replay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import duckdb
import numpy as np

from engine.step_time.model import StepModel, fit_step_model
from store.levels import COARSEST, DAY
from store.load import Runner
from store.step_times import Counted, counted_hours, counted_steps, counted_together, nothing_counted, timed

REFITS: Final = ((3600.0, 60.0), (DAY, 600.0), (math.inf, 3600.0))
"""Up to this age of an engine and model version, its model is made anew at every multiple of so many seconds of record
time. What is not in it yet is at most a sixth of what is after the first hour, and 1/24 after the first day, while it
costs 350 fits a week."""


def refitted(started: float, ts: float) -> float:
    """The last moment at or before `ts` at which the model of an engine is made that first started at `started`."""
    seconds = next(seconds for age, seconds in REFITS if ts - started < age)
    return ts // seconds * seconds


class CountedBefore:
    """Step times of the steps that ended before a moment, which moves on: whole hours from the table `step_times`,
    which is never removed before the steps are, the rest from steps. Neither depends on what is rolled up by now."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._begin()

    def _begin(self) -> None:
        self._hours = self._rest = nothing_counted()
        self._hour = self._up_to = 0.0

    def to(self, runs: Sequence[int], moment: float) -> Counted:
        """
        Args:
            moment: Unix seconds, a multiple of 10 that is rolled up.
        """
        if moment < self._up_to:
            self._begin()
        hour = COARSEST.floor(moment)
        if hour > self._hour:
            more = counted_hours(self._connection, runs, self._hour, hour)
            self._hours, self._rest = counted_together(self._hours, more), nothing_counted()
            self._hour = self._up_to = hour
        if moment > self._up_to:
            more = counted_steps(self._connection, runs, self._up_to, moment)
            self._rest, self._up_to = counted_together(self._rest, more), moment
        return counted_together(self._hours, self._rest)


class _Known:
    """What the judge knows of one engine and model version."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, started: float) -> None:
        self.started = started
        self.runs: list[int] = []
        self._counted = CountedBefore(connection)
        self._last = nothing_counted()
        self._boundary = -math.inf
        self._model: StepModel | None = None

    def model(self, boundary: float) -> StepModel | None:
        if boundary != self._boundary:
            counted = self._counted.to(self.runs, boundary)
            if not np.array_equal(counted, self._last):
                self._model = fit_step_model(timed(counted))
            self._last, self._boundary = counted, boundary
        return self._model


class KnownBefore(NamedTuple):
    """What another store knew that this one goes on from."""

    up_to: float = 0.0
    """Unix seconds."""
    models: Mapping[Runner, StepModel] = {}
    """Those that were made before then: they hold until the next are made."""
    started: Mapping[Runner, float] = {}
    """First starts, Unix seconds."""


class JudgedModels:
    """Models by engine and moment; to go forward is cheap."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, before: KnownBefore | None = None) -> None:
        self._connection = connection
        self._before = before or KnownBefore()
        self._known: dict[Runner, _Known] = {}

    def refresh(self) -> None:
        """Learn of the engines that were started since the last time."""
        for runner, (began, runs) in started_runs(self._connection).items():
            started = min(began, self._before.started.get(runner, began))
            if runner not in self._known or self._known[runner].started != started:
                self._known[runner] = _Known(self._connection, started)
            self._known[runner].runs = runs

    def model(self, runner: Runner, ts: float) -> StepModel | None:
        """The model to judge a cell by that begins at `ts`; None where no step was seen by then."""
        known = self._known.get(runner)
        if known is None:
            return None
        boundary = refitted(known.started, ts)
        return self._before.models.get(runner) if boundary < self._before.up_to else known.model(boundary)

    def started(self, runner: Runner) -> float:
        """Its first start, Unix seconds."""
        return self._known[runner].started

    def in_force(self, ts: float) -> dict[Runner, StepModel]:
        """Those of all engines at a moment."""
        models = {runner: self.model(runner, ts) for runner in self._known}
        return {runner: model for runner, model in models.items() if model is not None}


def started_runs(connection: duckdb.DuckDBPyConnection) -> dict[Runner, tuple[float, list[int]]]:
    """Of each engine and model version: its first start, Unix seconds, and the numbers of its runs."""
    found: dict[Runner, tuple[float, list[int]]] = {}
    for number, engine, version, ts in connection.execute(
        "SELECT id, engine, model_version, ts FROM engines ORDER BY ts, id"
    ).fetchall():
        found.setdefault(Runner(engine, version), (ts, []))[1].append(number)
    return found
