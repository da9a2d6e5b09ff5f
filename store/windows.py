"""The live picture in memory: figures of each bucket over its window, sparklines, series, engine load. No SQL.

Counts stand in cells: of 10 s for the 5-minute window, of 1 and 5 minutes for the longer ones, so that memory is
bounded by the number of buckets. Time is record time; `now` is the caller's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Final

import msgspec
import numpy as np

from engine.frames import PackedStep
from engine.records import EngineRecord
from engine.step_time.model import StepModel
from store.bucket_window import BucketWindow, bucket_window
from store.buckets import CALIBRATION, BucketName, bucket_order
from store.counts import Ints, TallyChange
from store.engine_loads import EngineLoad, EngineLoads
from store.figures import BucketKey, Figures, SeriesPoint, Window
from store.grouping import changes
from store.levels import CELL_SECONDS
from store.load import Runner
from store.metrics import divided, figures
from store.recorded import Interval, recorded_seconds
from store.rowbatch import RowBatch
from store.series import KEPT_SECONDS, Ring, points, range_of
from store.step_models import realised
from store.token_rate import RATE_SECONDS, TokenRate
from store.window_group import Group
from store.window_spans import SPANS, place_of

RENEW_SECONDS: Final = 0.003
"""A picture spends about so long on bringing buckets up to date, …"""
RENEWED_AT_LEAST: Final = 4
"""… but always does so many."""


class LiveWindows:
    """Kept up by an `Ingest`; read 4 times a second.

    What is read of buckets takes `window`: seconds of one that the operator fixed; None lets each choose its own.

    Args:
        renew_seconds: how long a picture may spend on bringing buckets up to date.
    """

    def __init__(self, renew_seconds: float = RENEW_SECONDS) -> None:
        self._renew_seconds = renew_seconds
        self._groups: dict[BucketKey, Group] = {}
        self._ordered: list[BucketKey] = []
        self._pool = Group(SPANS)
        self._load_ring = Ring(columns=2)
        self._loads = EngineLoads()
        self._outages: dict[str, list[Interval]] = {}
        self._rate = TokenRate()
        self._recorded_from: float | None = None
        self._models: Mapping[Runner, StepModel] = {}
        self._asked: dict[int, float] = {}
        """When each window was last asked for by its number."""

    # Kept up by the ingest

    def add(self, batch: RowBatch, names: Mapping[int, BucketName]) -> None:
        """Add possible rows; `names` of the buckets in the batch. Calibration serves nobody and is left out."""
        ours = [bucket for bucket, name in names.items() if name[1] == CALIBRATION]
        if ours:
            batch = batch.take(~np.isin(batch.bucket, ours))
        if not len(batch):
            return
        runner = _runner(names[int(batch.bucket[0])])  # of all of them: a batch is of one run of an engine
        for change in changes(batch):
            self._group(BucketKey(*names[change.bucket][1:])).add(runner, change)
        for change in changes(replace(batch, bucket=np.zeros_like(batch.bucket))):
            self._pool.add(runner, change)
        self._rate.add(batch)

    def _group(self, key: BucketKey) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(SPANS)
        return group

    def step(self, engine: str, record: EngineRecord | None, step: PackedStep, matrix: Ints) -> None:
        """Note an engine's load. Where its batch K can't move, the executed K is the largest that was asked for."""
        self.recorded_since(step.ts - step.duration_ms / 1000)
        self.add_load(int(step.ts // CELL_SECONDS), 1, step.running)
        self._loads.step(engine, record, step, matrix)

    def add_load(self, cell: int, steps: int, running: int) -> None:
        """`steps` ended in 10-s cell number `cell`, with `running` sequences in all of them together."""
        self._load_ring.add(cell, [steps, running])

    def live_sequences(self, engine: str, live: int) -> None:
        """An idle engine makes no steps: the last step's load ends with its sequences."""
        self._loads.live_sequences(engine, live)

    def use_models(self, models: Mapping[Runner, StepModel]) -> None:
        """Hold rows against these step times from now on."""
        self._models = models
        for group in (*self._groups.values(), self._pool):
            group.cached.clear()
            group.changes += 1

    def outage(self, engine: str, since: float, until: float) -> None:
        """Nothing is known of this stretch of an engine."""
        known = self._outages.setdefault(engine, [])
        known.append((since, until))
        self._outages[engine] = [interval for interval in known if interval[1] > until - KEPT_SECONDS]
        for group in self._groups.values():
            group.changes += 1

    def recorded_since(self, ts: float) -> None:
        """There are records from `ts` on, or from earlier."""
        self._recorded_from = ts if self._recorded_from is None else min(ts, self._recorded_from)

    # From a store, once, before anything is added; cells oldest first

    def restore_cell(
        self, name: BucketName, place: int, start: int, change: TallyChange, load: Mapping[int, list[int]]
    ) -> None:
        """What window number `place` of a bucket holds in the cell of its size that starts at `start`."""
        if name[1] == CALIBRATION:
            return
        group, runner = self._group(BucketKey(*name[1:])), _runner(name)
        group.windows[place].add(start, change)
        group.loads[place].add(runner, start, load)

    def restore_pool(self, place: int, start: int, change: TallyChange) -> None:
        """The same of all buckets, but for their load."""
        self._pool.windows[place].add(start, change)

    def restore_pool_load(self, name: BucketName, place: int, start: int, load: Mapping[int, list[int]]) -> None:
        """The load of all buckets of one runner; `name`: of any of them."""
        self._pool.loads[place].add(_runner(name), start, load)

    def restore_series(self, name: BucketName | None, cells: Ints, sums: Ints, last_seen: float) -> None:
        """Sums of a bucket (None: of all pooled) in 10-s cells, as `Ring.restore` takes them."""
        if name is not None and name[1] == CALIBRATION:
            return
        group = self._pool if name is None else self._group(BucketKey(*name[1:]))
        group.ring.restore(cells, sums)
        group.last_seen = max(group.last_seen, last_seen)

    def restore_rate(self, seconds: Mapping[int, int]) -> None:
        """Tokens committed in each of the last whole seconds, by its number in Unix time."""
        self._rate.restore(seconds)

    def restore_load(self, engine: str, record: EngineRecord | None, step: PackedStep, matrix: Ints) -> None:
        """What an engine's last step shows of it; the step itself is in the cells of load already."""
        self._loads.step(engine, record, step, matrix)

    # Read by whoever shows it

    def buckets(self, now: float, window: float | None = None) -> list[BucketWindow]:
        """The buckets that were seen in the last six hours, in the order of their keys."""
        self.keep_up(now, window)
        fixed = place_of(window)
        found = (self._groups[key].last_shown(fixed) for key in self._ordered)
        return [shown.view for shown in found if shown is not None]

    def keep_up(self, now: float, window: float | None, patience: float | None = None) -> bool:
        """Bring what `buckets` shows up to date; whether each bucket has something to show.

        Args:
            patience: seconds after which it is enough, though some were never shown so far: whoever gives it calls
                again until all are, and lets others at the windows meanwhile.
        """
        gone = [key for key, group in self._groups.items() if group.last_seen < now - KEPT_SECONDS]
        for key in gone:
            del self._groups[key]
        if gone or len(self._ordered) != len(self._groups):
            self._ordered = sorted(self._groups, key=_order)
        fixed = place_of(window)
        if fixed is not None:
            asked = self._asked.get(fixed)
            if asked is None or not 0 <= now - asked < CELL_SECONDS:
                for group in self._groups.values():
                    group.forget(fixed)
            self._asked[fixed] = now
        return self._renew(now, fixed, patience)

    def _renew(self, now: float, fixed: int | None, patience: float | None) -> bool:
        """Bring what is shown up to date: all of it where buckets are few, else the oldest first and no longer than
        the time for it, so that a picture never waits for hundreds of buckets; the next one goes on."""
        due = [
            (0.0 if last is None else last.at, key)
            for key, group in self._groups.items()
            if group.is_due(now, fixed)
            for last in (group.last_shown(fixed),)
        ]
        began = time.perf_counter()
        for number, (_, key) in enumerate(sorted(due, key=itemgetter(0))):
            group, spent = self._groups[key], time.perf_counter() - began
            new = group.last_shown(fixed) is None
            if number >= RENEWED_AT_LEAST and not new and spent > self._renew_seconds:
                return True
            if number >= RENEWED_AT_LEAST and new and patience is not None and spent > patience:
                return False
            group.bring_to(now)
            chosen = group.choose(now)
            place = chosen if fixed is None else fixed
            found = self._figures(group, place, now, key)
            group.show(place, bucket_window(key, found, SPANS[place][2], group.ring, group.last_seen, now), now)
        return True

    def total(self, now: float, window: float | None = None) -> Figures | None:
        """All buckets pooled; None while there is nothing in six hours."""
        self._pool.bring_to(now)
        if not self._pool.windows[-1].total:
            return None
        fixed = place_of(window)
        place = self._pool.choose(now) if fixed is None else fixed
        return self._figures(self._pool, place, now, BucketKey(None, None, None, None))

    def series(self, key: BucketKey | None, seconds: float, points_wanted: int, now: float) -> list[SeriesPoint]:
        """The last `seconds` of a bucket (None: all pooled) in about `points_wanted` points of whole 10-s cells."""
        group = self._pool if key is None else self._groups.get(key)
        if group is None or self._recorded_from is None:
            return []
        first, size, _ = spread = range_of(seconds, points_wanted, now)
        return points(
            group.ring.read(first, spread.last), self._load_ring.read(first, spread.last), first, size,
            (self._recorded_from, now),
        )  # fmt: skip

    def tokens_per_second(self, now: float, seconds: int = RATE_SECONDS) -> float | None:
        """Tokens committed by all engines over the last whole `seconds`; None before there is a second on record."""
        return None if self._recorded_from is None else self._rate.over(self._recorded_from, now, seconds)

    def engine_load(self, engine: str) -> EngineLoad | None:
        return self._loads.of(engine)

    def _figures(self, group: Group, place: int, now: float, key: BucketKey) -> Figures:
        tally = group.windows[place]
        edge = math.ceil((now - tally.seconds) / tally.cell_seconds) * tally.cell_seconds
        start = min(now, max(edge, self._recorded_from or now))
        window = Window(start, now)
        seconds = recorded_seconds(start, now, self._outages, self._loads.engines)
        made = group.cached.get(place)
        if made is None:
            made = figures(
                tally.total.as_joint(),
                tally.total.as_sequence_totals(),
                speedup=realised(group.loads[place].sums(), self._models),
                seconds=seconds,
                window=window,
                workload=key.workload,
                context=key.context,
                temperature=key.temperature,
                model_version=key.model_version,
            )
            group.cached[place] = made
            return made
        return msgspec.structs.replace(made, tokens_per_second=divided(made.emitted or 0, seconds), window=window)


def _runner(name: BucketName) -> Runner:
    return Runner(name[0], name[4])


def _order(key: BucketKey) -> tuple[object, ...]:
    return bucket_order(key.workload, key.context, key.temperature, key.model_version)
