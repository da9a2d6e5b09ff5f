"""Replay without a screen: a trace through the same ingest as live frames, in record time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.records import StepRecord
from store.alerts import AlertReport, history
from store.database import Store
from store.figures import Report
from store.ingest import Ingest
from store.judge.settings import JudgeSettings
from store.judging import judge_all
from store.report import report
from store.source import FLUSH_ROWS
from store.trace import TraceNotes, read_records


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
    notes = TraceNotes()
    with Store.memory() as store:
        ingest = Ingest(store)
        clock: float | None = None
        for record in read_records(path, notes):
            if clock is None and isinstance(record, StepRecord):
                clock = record.ts - record.duration_ms / 1000
            if speed is not None and clock is not None and record.ts > clock:
                sleep((record.ts - clock) / speed)
                clock = record.ts
            ingest.record(record)
            if ingest.buffered_rows >= FLUSH_ROWS:
                ingest.flush()
            if on_progress is not None:
                on_progress(record.ts)
        for line in notes.lines():
            ingest.note(line)
        ingest.close()
        judge_all(store.connection, settings)
        return ReplayResult(report(store.connection, source=str(path)), history(store.connection).alerts)
