"""The live picture in memory: figures of each bucket over its window, sparklines, series, engine load. No SQL.

Counts stand in cells: of 10 s for the 5-minute window, of 1 and 5 minutes for the longer ones, so that memory is
bounded by the number of buckets. Time is record time; `now` is the caller's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from operator import itemgetter
from typing import Final

import msgspec
import numpy as np

from engine.frames import PackedStep
from engine.records import LIMITS, EngineRecord
from engine.step_time.model import StepModel
from store.buckets import BucketName, bucket_order
from store.counts import RATIO_UNIT, Ints, Tally, accumulate
from store.figures import BucketKey, Figures, SeriesPoint, Window
from store.grouping import CellChange, changes
from store.levels import CELL_SECONDS
from store.load import Runner, SlidingLoad
from store.metrics import divided, figures
from store.recorded import Interval, recorded_seconds
from store.rowbatch import EMITTED, K_ASKED, LIMIT, RowBatch
from store.series import DRAFT_STEPS, KEPT_SECONDS, RATIO, Ring, grouped, points
from store.sliding import SlidingTally
from store.step_models import realised

SPANS: Final[tuple[tuple[float, int, str], ...]] = ((300.0, 10, "5 min"), (3600.0, 60, "1 h"), (21600.0, 300, "6 h"))
"""Windows: seconds, seconds of a cell, label."""
ENOUGH_SEQUENCES: Final = 30
"""The smallest window with this many sequences is shown, …"""
KEEP_SEQUENCES: Final = 20
"""… and kept until it falls under this many."""

SPARK_POINTS: Final = 30
SPARK_CELLS: Final = 3
RENEW_SECONDS: Final = 0.004
"""A picture spends about so long on bringing buckets up to date, …"""
RENEWED_AT_LEAST: Final = 24
"""… but always does so many."""

_SECOND_BINS: Final = 120
_MAX_UNSETTLED: Final = 6


class BucketWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the live table; fields as in the feed's bucket view."""

    key: BucketKey
    figures: Figures
    window_label: str
    spark: list[float | None]
    """α over the last 15 minutes, oldest first; None where nothing was drafted."""
    k_mix: list[float]
    """Share of decode rows at k_asked 0, 1, 2, …"""
    last_seen: float


class EngineLoad(msgspec.Struct, frozen=True, kw_only=True):
    """An engine as its last step shows it."""

    engine: str
    running: int
    waiting: int
    executed_k: int | None
    executed_limit: str | None
    policy: int
    last_frame: float
    """End of the last step, Unix seconds."""


class _Group:
    """One bucket, or the pool of all: its windows and its ring."""

    def __init__(self, spans: tuple[tuple[float, int, str], ...]) -> None:
        self.windows = [SlidingTally(seconds, cell) for seconds, cell, _ in spans]
        self.loads = [SlidingLoad(seconds, cell) for seconds, cell, _ in spans]
        self.ring = Ring()
        self._unsettled: dict[int, Tally] = {}
        self._unsettled_load: dict[tuple[Runner, int], dict[int, list[int]]] = {}
        self.last_seen = 0.0
        self.shown: int | None = None
        self.cached: tuple[int, Figures] | None = None
        self.view: BucketWindow | None = None
        """As it was shown last, …"""
        self.viewed_at = 0.0
        """… at this moment, …"""
        self.changed = False
        """… and whether anything came since."""

    def add(self, runner: Runner, change: CellChange) -> None:
        accumulate(self._unsettled_load.setdefault((runner, change.cell), {}), change.load)
        self._unsettled.setdefault(change.cell, Tally()).add(change.change)
        if len(self._unsettled) > _MAX_UNSETTLED:
            self.settle()
        self.ring.add(change.cell, change.sums)
        self.last_seen = max(self.last_seen, change.last_seen)
        self.changed = True

    def is_due(self, now: float) -> bool:
        """Whether a picture of this moment would be another: rows came, or a cell may have left a window."""
        return self.view is None or self.changed or not 0 <= now - self.viewed_at < CELL_SECONDS

    def settle(self) -> None:
        """Let the windows have what has come: rows come far more often than anybody looks."""
        for cell, tally in self._unsettled.items():
            for window in self.windows:
                window.add(cell * CELL_SECONDS, tally)
            self.cached = None
        for (runner, cell), sums in self._unsettled_load.items():
            for load in self.loads:
                load.add(runner, cell * CELL_SECONDS, sums)
        self._unsettled.clear()
        self._unsettled_load.clear()

    def bring_to(self, now: float) -> None:
        self.settle()
        for window in self.windows:
            if window.expire(now):
                self.cached = None
        for load in self.loads:
            load.expire(now)

    def choose(self) -> int:
        """The window to show: the smallest with enough sequences, kept until it has too few.

        Where none has enough, the smallest that holds as many as the longest: a longer one would know no more.
        """
        enough = min(ENOUGH_SEQUENCES, self.windows[-1].sequences)
        best = next(place for place, window in enumerate(self.windows) if window.sequences >= enough)
        kept = self.shown
        if kept is None or best < kept or self.windows[kept].sequences < KEEP_SEQUENCES:
            self.shown = kept = best
        return kept


class LiveWindows:
    """Kept up by an `Ingest`; read 4 times a second.

    Args:
        fixed: label of a window that the operator fixed, e.g. `1 h`; None lets each bucket choose its own.
    """

    def __init__(self, fixed: str | None = None) -> None:
        self.fixed = fixed
        self._groups: dict[BucketKey, _Group] = {}
        self._ordered: list[BucketKey] = []
        self._pool = _Group(SPANS)
        self._load_ring = Ring(columns=2)
        self._loads: dict[str, EngineLoad] = {}
        self._outages: dict[str, list[Interval]] = {}
        self._seconds: dict[int, int] = {}
        self._recorded_from: float | None = None
        self._models: Mapping[Runner, StepModel] = {}

    # Kept up by the ingest

    def add(self, batch: RowBatch, names: Mapping[int, BucketName]) -> None:
        """Add possible rows; `names` of the buckets in the batch."""
        for change in changes(batch):
            self.add_change(names[change.bucket], change)
        seconds, place = np.unique(batch.raw.ts.astype(np.int64), return_inverse=True)
        emitted = np.bincount(place, weights=batch.raw.matrix[EMITTED])
        for second, tokens in zip(seconds.tolist(), emitted.tolist(), strict=True):
            self._seconds[second] = self._seconds.get(second, 0) + int(tokens)
        while len(self._seconds) > _SECOND_BINS:
            del self._seconds[min(self._seconds)]

    def add_change(self, name: BucketName, change: CellChange) -> None:
        key = BucketKey(*name[1:])
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(SPANS)
        runner = Runner(name[0], name[4])
        group.add(runner, change)
        self._pool.add(runner, change)

    def step(self, engine: str, record: EngineRecord | None, step: PackedStep, matrix: Ints) -> None:
        """Note an engine's load. Where its batch K can't move, the executed K is the largest that was asked for."""
        self.recorded_since(step.ts - step.duration_ms / 1000)
        self.add_load(int(step.ts // CELL_SECONDS), 1, step.running)
        executed: tuple[int, str] | None = (step.k_draft, step.limit_draft)
        if record is not None and (record.batch_k == "fixed" or record.data_parallel_size > 1):
            executed = _largest_asked(matrix)
        self._loads[engine] = EngineLoad(
            engine=engine,
            running=step.running,
            waiting=step.waiting,
            executed_k=executed[0] if executed else None,
            executed_limit=executed[1] if executed else None,
            policy=step.policy,
            last_frame=step.ts,
        )

    def add_load(self, cell: int, steps: int, running: int) -> None:
        """`steps` ended in 10-s cell number `cell`, with `running` sequences in all of them together."""
        self._load_ring.add(cell, [steps, running])

    def live_sequences(self, engine: str, live: int) -> None:
        """An idle engine makes no steps: the last step's load ends with its sequences."""
        load = self._loads.get(engine)
        if load is not None and live < load.running + load.waiting:
            running = min(load.running, live)
            self._loads[engine] = msgspec.structs.replace(load, running=running, waiting=live - running)

    def use_models(self, models: Mapping[Runner, StepModel]) -> None:
        """Hold rows against these step times from now on."""
        self._models = models
        for group in (*self._groups.values(), self._pool):
            group.cached, group.changed = None, True

    def outage(self, engine: str, since: float, until: float) -> None:
        """Nothing is known of this stretch of an engine."""
        known = self._outages.setdefault(engine, [])
        known.append((since, until))
        self._outages[engine] = [interval for interval in known if interval[1] > until - KEPT_SECONDS]
        for group in self._groups.values():
            group.changed = True

    def recorded_since(self, ts: float) -> None:
        """There are records from `ts` on, or from earlier."""
        self._recorded_from = ts if self._recorded_from is None else min(ts, self._recorded_from)

    # Read by whoever shows it

    def buckets(self, now: float) -> list[BucketWindow]:
        """The buckets that were seen in the last six hours, in the order of their keys."""
        gone = [key for key, group in self._groups.items() if group.last_seen < now - KEPT_SECONDS]
        for key in gone:
            del self._groups[key]
        if gone or len(self._ordered) != len(self._groups):
            self._ordered = sorted(self._groups, key=_order)
        self._renew(now)
        return [view for key in self._ordered if (view := self._groups[key].view) is not None]

    def _renew(self, now: float) -> None:
        """Bring what is shown up to date: all of it where buckets are few, else the oldest first and no longer than
        `RENEW_SECONDS`, so that a picture never waits for hundreds of buckets; the next one goes on."""
        due = [(group.viewed_at, key) for key, group in self._groups.items() if group.is_due(now)]
        deadline = time.perf_counter() + RENEW_SECONDS
        for number, (_, key) in enumerate(sorted(due, key=itemgetter(0))):
            group = self._groups[key]
            if number >= RENEWED_AT_LEAST and group.view is not None and time.perf_counter() > deadline:
                return
            group.bring_to(now)
            place = self._place(group)
            found = self._figures(group, place, now, key)
            group.view = BucketWindow(
                key=key,
                figures=found,
                window_label=SPANS[place][2],
                spark=_spark(group.ring, now),
                k_mix=k_mix(found),
                last_seen=group.last_seen,
            )
            group.viewed_at, group.changed = now, False

    def total(self, now: float) -> Figures | None:
        """All buckets pooled; None while there is nothing in six hours."""
        self._pool.bring_to(now)
        if not self._pool.windows[-1].total:
            return None
        return self._figures(self._pool, self._place(self._pool), now, BucketKey(None, None, None, None))

    def series(self, key: BucketKey | None, seconds: float, points_wanted: int, now: float) -> list[SeriesPoint]:
        """The last `seconds` of a bucket (None: all pooled) in about `points_wanted` points of whole 10-s cells."""
        group = self._pool if key is None else self._groups.get(key)
        if group is None or self._recorded_from is None:
            return []
        seconds = min(seconds, KEPT_SECONDS - CELL_SECONDS)
        size = max(1, math.ceil(seconds / max(1, points_wanted) / CELL_SECONDS))
        count = math.ceil(seconds / CELL_SECONDS / size)
        first = (int(now // CELL_SECONDS) // size - count + 1) * size
        last = first + count * size - 1
        return points(
            group.ring.read(first, last), self._load_ring.read(first, last), first, size, (self._recorded_from, now)
        )

    def tokens_per_second(self, now: float, seconds: int = 10) -> float | None:
        """Tokens committed by all engines over the last whole `seconds`; None before there is a second on record."""
        if self._recorded_from is None:
            return None
        end = math.floor(now)
        start = max(end - seconds, math.floor(self._recorded_from))
        emitted = sum(tokens for second, tokens in self._seconds.items() if start <= second < end)
        return divided(emitted, max(0, end - start))

    def engine_load(self, engine: str) -> EngineLoad | None:
        return self._loads.get(engine)

    def _place(self, group: _Group) -> int:
        for place, (_, _, label) in enumerate(SPANS):
            if label == self.fixed:
                return place
        return group.choose()

    def _figures(self, group: _Group, place: int, now: float, key: BucketKey) -> Figures:
        tally = group.windows[place]
        edge = math.ceil((now - tally.seconds) / tally.cell_seconds) * tally.cell_seconds
        start = min(now, max(edge, self._recorded_from or now))
        window = Window(start, now)
        seconds = recorded_seconds(start, now, self._outages, self._loads)
        if group.cached is None or group.cached[0] != place:
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
            group.cached = (place, made)
            return made
        made = group.cached[1]
        return msgspec.structs.replace(made, tokens_per_second=divided(made.emitted or 0, seconds), window=window)


def k_mix(shown: Figures) -> list[float]:
    """Share of decode rows at k_asked 0, 1, 2, … up to the largest that occurs."""
    if not shown.k_histogram:
        return []
    largest = max(int(k) for k in shown.k_histogram)
    rows = sum(shown.k_histogram.values())
    return [shown.k_histogram.get(str(k), 0) / rows for k in range(largest + 1)]


def _order(key: BucketKey) -> tuple[object, ...]:
    return bucket_order(key.workload, key.context, key.temperature, key.model_version)


def _spark(ring: Ring, now: float) -> list[float | None]:
    last = int(now // CELL_SECONDS)
    cells = grouped(ring.read(last - SPARK_POINTS * SPARK_CELLS + 1, last), SPARK_CELLS)
    return [divided(int(cell[RATIO]), RATIO_UNIT * int(cell[DRAFT_STEPS])) for cell in cells]


def _largest_asked(matrix: Ints) -> tuple[int, str] | None:
    if not matrix.shape[1]:
        return None
    place = int(matrix[K_ASKED].argmax())
    code = int(matrix[LIMIT][place])
    return int(matrix[K_ASKED][place]), LIMITS[code] if 0 <= code < len(LIMITS) else "max"
