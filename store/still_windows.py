"""The live picture at one moment of a store, straight from its rollups: what `LiveWindows` show that were kept up until
then, without what they need to move on. A third of the work: for a seek, not for playing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import duckdb
import numpy as np

from engine.frames import PackedStep
from engine.records import EngineRecord
from engine.step_time.load import LoadSums
from engine.step_time.model import StepModel
from store.bucket_window import SPARK_CELLS, SPARK_POINTS, BucketWindow, bucket_window
from store.buckets import bucket_order
from store.counts import Ints
from store.engine_loads import EngineLoad, EngineLoads
from store.figures import BucketKey, Figures, SeriesPoint, Window
from store.levels import CELL_SECONDS
from store.load import Runner
from store.metrics import figures
from store.nested_counts import NestedCounts
from store.recent import last_cells, load_cells, outages, recent_rate, ring_sums
from store.recorded import recorded_seconds
from store.series import KEPT_SECONDS, Ring, points, range_of
from store.sql import only_row
from store.step_models import realised
from store.stored import Stored
from store.token_rate import RATE_SECONDS, TokenRate
from store.window_group import ENOUGH_SEQUENCES
from store.window_spans import SPANS, place_of

_SPARK_SECONDS: Final = SPARK_POINTS * SPARK_CELLS * CELL_SECONDS


class StillWindows:
    """As `LiveWindows`, but of the moment `now` (Unix seconds) alone, which its readers name again."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        now: float,
        models: Mapping[Runner, StepModel],
    ) -> None:
        self._connection = connection
        self._now = now
        self._models = models
        self._names = dict(Stored(connection).buckets())
        self._counts = NestedCounts(connection, now)
        self._outages: dict[str, list[tuple[float, float]]] = {}
        for engine, since, until in outages(connection, now):
            self._outages.setdefault(engine, []).append((since, until))
        self._loads = EngineLoads()
        self._rate = TokenRate()
        self._rate.restore(recent_rate(connection, now))
        (began,) = only_row(connection, "SELECT min(ts - duration_ms / 1000) FROM steps WHERE ts <= ?", [now])
        self._recorded_from: float | None = began
        self._seen, self._sparks = self._recent()

    def restore_load(self, engine: str, record: EngineRecord | None, step: PackedStep, matrix: Ints) -> None:
        """What an engine's last step shows of it."""
        self._loads.step(engine, record, step, matrix)

    def live_sequences(self, engine: str, live: int) -> None:
        """An idle engine makes no steps: the last step's load ends with its sequences."""
        self._loads.live_sequences(engine, live)

    def use_models(self, models: Mapping[Runner, StepModel]) -> None:
        """Hold rows against these step times from now on."""
        self._models = models

    def buckets(self, now: float, window: float | None = None) -> list[BucketWindow]:
        """The buckets that were seen in the last six hours, in the order of their keys."""
        members: dict[BucketKey, list[int]] = {}
        for number in self._seen:
            members.setdefault(BucketKey(*self._names[number][1:]), []).append(number)
        return [
            self._bucket(key, np.array(members[key], dtype=np.int64), window)
            for key in sorted(members, key=_order)
            if max(self._seen[number] for number in members[key]) >= now - KEPT_SECONDS
        ]

    def total(self, now: float, window: float | None = None) -> Figures | None:
        """All buckets pooled; None while there is nothing in six hours."""
        everything = self._counts.buckets
        if not len(everything):
            return None
        return self._figures(BucketKey(None, None, None, None), everything, self._place(everything, window))

    def series(self, key: BucketKey | None, seconds: float, points_wanted: int, now: float) -> list[SeriesPoint]:
        """The last `seconds` of a bucket (None: all pooled) in about `points_wanted` points of whole 10-s cells."""
        members = None if key is None else [n for n, name in self._names.items() if BucketKey(*name[1:]) == key]
        if self._recorded_from is None or members == []:
            return []
        first, size, count = spread = range_of(seconds, points_wanted, now)
        ring, load = Ring(), Ring(columns=2)
        for _, cells, sums in ring_sums(
            self._connection, now, (count + 1) * size * CELL_SECONDS, pooled=True, only=members
        ):
            ring.restore(cells, sums)
        for cell, steps, running in load_cells(self._connection, now):
            load.add(cell, [steps, running])
        return points(
            ring.read(first, spread.last), load.read(first, spread.last), first, size, (self._recorded_from, now)
        )

    def tokens_per_second(self, now: float, seconds: int = RATE_SECONDS) -> float | None:
        """Tokens committed by all engines over the last whole `seconds`; None before there is a second on record."""
        return None if self._recorded_from is None else self._rate.over(self._recorded_from, now, seconds)

    def engine_load(self, engine: str) -> EngineLoad | None:
        return self._loads.of(engine)

    def _recent(self) -> tuple[dict[int, float], dict[int, list[tuple[int, Ints]]]]:
        """When each bucket was last seen, known to a cell, and what its sparkline is drawn from."""
        seen = {
            number: min(self._now, float(cell + 1) * CELL_SECONDS)
            for number, cell in last_cells(self._connection, self._now).items()
        }
        recent = ring_sums(self._connection, self._now, _SPARK_SECONDS + CELL_SECONDS)
        sparks = {number: list(zip(cells.tolist(), sums, strict=True)) for number, cells, sums in recent}
        return seen, sparks

    def _bucket(self, key: BucketKey, members: Ints, window: float | None) -> BucketWindow:
        place = self._place(members, window)
        ring = Ring()
        for number in members.tolist():
            for cell, sums in self._sparks.get(number, ()):
                ring.add(cell, sums)
        seen = max(self._seen[number] for number in members.tolist())
        return bucket_window(key, self._figures(key, members, place), SPANS[place][2], ring, seen, self._now)

    def _place(self, members: Ints, window: float | None) -> int:
        """Number of the fixed window, else as `window_group.Group` chooses that was never shown before."""
        place = place_of(window)
        if place is not None:
            return place
        held = self._counts.many_sequences(members)
        enough = min(ENOUGH_SEQUENCES, held[-1])
        return next(place for place, sequences in enumerate(held) if sequences >= enough)

    def _figures(self, key: BucketKey, members: Ints, place: int) -> Figures:
        seconds, size, _ = SPANS[place]
        edge = math.ceil((self._now - seconds) / size) * size
        start = min(self._now, max(edge, self._recorded_from or self._now))
        return figures(
            self._counts.joint(members, place),
            self._counts.sequences(members, place),
            speedup=realised(self._load_of(members, place), self._models),
            seconds=recorded_seconds(start, self._now, self._outages, self._loads.engines),
            window=Window(start, self._now),
            workload=key.workload,
            context=key.context,
            temperature=key.temperature,
            model_version=key.model_version,
        )

    def _load_of(self, members: Ints, place: int) -> dict[Runner, LoadSums]:
        runners: dict[Runner, list[int]] = {}
        for number in members.tolist():
            name = self._names[number]
            runners.setdefault(Runner(name[0], name[4]), []).append(number)
        loads = {runner: self._counts.load(np.array(mine, dtype=np.int64), place) for runner, mine in runners.items()}
        return {runner: load for runner, load in loads.items() if len(load.cell)}


def _order(key: BucketKey) -> tuple[object, ...]:
    return bucket_order(key.workload, key.context, key.temperature, key.model_version)
