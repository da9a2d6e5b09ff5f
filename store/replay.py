"""Replay without a screen: a trace through the same ingest as live frames, in record time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.records import StepRecord
from store.alerts import history
from store.database import Store
from store.figures import Report
from store.ingest import Ingest
from store.judge.reports import AlertReport
from store.judge.settings import JudgeSettings
from store.judging import judge_all
from store.report import report
from store.source import take_in
from store.trace import Steps, read_pieces


class ReplayResult(msgspec.Struct, frozen=True):
    """What `specdeck replay --headless --json` prints."""

    report: Report
    alerts: list[AlertReport]


def replay_headless(
    path: str | Path,
    speed: float | None = None,
    *,
    settings: JudgeSettings | None = None,
    on_progress: Callable[[float], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> ReplayResult:
    """Replay a trace to its end and report on it.

    Args:
        speed: record seconds a wall second, from the start of the first step on; None: as fast as it goes.
        settings: of the judge.
        on_progress: called with the record time (Unix seconds) of each record.

    Raises:
        TraceError: the trace can't be read.
        ValueError: a speed that is not positive.
    """
    if speed is not None and not speed > 0:
        raise ValueError(f"speed: must be more than 0, or max, not {speed}")
    pace = None if speed is None and on_progress is None else _Pace(_start(path), speed, on_progress, sleep)
    with Store.for_trace(path) as store:
        take_in(path, Ingest(store), pace=pace)
        judge_all(store.connection, settings)
        return of_store(store, str(path))


def of_store(store: Store, source: str) -> ReplayResult:
    """The same of a store, which was judged as it was recorded."""
    return ReplayResult(report(store.connection, source=source), history(store.connection).alerts)


class _Pace:
    """Waits until a record's time has come, from the start of the first step on."""

    def __init__(
        self,
        start: float,
        speed: float | None,
        on_progress: Callable[[float], None] | None,
        sleep: Callable[[float], None],
    ) -> None:
        self._clock = start
        self._speed = speed
        self._on_progress = on_progress
        self._sleep = sleep

    def __call__(self, ts: float) -> None:
        if self._speed is not None and ts > self._clock:
            self._sleep((ts - self._clock) / self._speed)
            self._clock = ts
        if self._on_progress is not None:
            self._on_progress(ts)


def _start(path: str | Path) -> float:
    """When the first step began, Unix seconds; infinity where there is none. Raises TraceError."""
    for piece in read_pieces(path):
        if isinstance(piece, Steps):
            return piece.block.times[piece.start] - float(piece.block.duration_ms[piece.start]) / 1000
        if isinstance(piece, StepRecord):
            return piece.ts - piece.duration_ms / 1000
    return math.inf
