"""Step-time models of the engines in a store, and the realised speedup that rows come to by them."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np

from engine.speedup import Speedup, pooled_speedup
from engine.step_time.load import LoadSums, account
from engine.step_time.model import StepModel, fit_step_model
from store.counts import Bools
from store.gather import Counts
from store.load import Runner
from store.step_times import step_times


def step_models(connection: duckdb.DuckDBPyConnection) -> dict[Runner, StepModel]:
    """A model for every engine and model version that made steps."""
    return {runner: fit_step_model(times) for runner, times in step_times(connection).items()}


def realised(loads: Mapping[Runner, LoadSums], models: Mapping[Runner, StepModel]) -> Speedup:
    """Realised speedup of rows of several engines, each held against its own model."""
    return pooled_speedup([account(sums, models.get(runner)) for runner, sums in loads.items()])


class ReportedSpeedup:
    """Realised speedup of any set of buckets of a store."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, counts: Counts) -> None:
        self._models = step_models(connection)
        self._counts = counts
        self._buckets: dict[Runner, list[int]] = {}
        for bucket, engine, version in connection.execute("SELECT id, engine, model_version FROM buckets").fetchall():
            self._buckets.setdefault(Runner(engine, version), []).append(bucket)

    def of(self, members: Bools) -> Speedup:
        """Of the buckets that `members` (indexed by bucket) marks."""
        loads = {}
        for runner, buckets in self._buckets.items():
            mine = np.zeros_like(members)
            mine[[bucket for bucket in buckets if bucket < len(members)]] = True
            mine &= members
            if mine.any():
                loads[runner] = self._counts.load(mine)
        return realised(loads, self._models)
