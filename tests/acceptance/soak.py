"""A day of an engine's frames through a real station: memory flat, no frame lost, the file as large as predicted.

Real frames (a sample trace, recorded from the bundled engine) are sent in a loop over the real socket to a station
process, their times shifted so that a day passes, as fast as the station takes them. Retention goes by the wall clock:
the day is laid around the moment 48 hours ago, so that half of its raw rows have had their time while it is recorded.

    python -m tests.acceptance.soak [--hours 24]

Holds when every frame and row sent is in the store's figures with no gap, the file takes no more than predicted, and
memory besides DuckDB's copy of the file grows by less than 10 % in a day once the live windows are full, after six and
a half hours of record time. A run of less than eight hours says nothing of memory.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import psutil
import zmq

from engine.sockets import Sockets, ipc
from store.gather import rows_ever
from store.retention import Keep
from tests.acceptance.looped_frames import ENGINE, LoopedTrace
from tests.acceptance.result import write
from tests.console.station_harness import StationUnderTest

TRACE = Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst"
HOURS = float(os.environ.get("SPECDECK_SOAK_HOURS", "24"))
WARM_HOURS = 6.5
LEAST_HOURS = 8.0
MOST_GROWTH = 0.10
IN_FLIGHT_ROWS = 20_000
SAMPLE_SECONDS = 1.0

ROW_BYTES, STEP_BYTES, CELL_BYTES, TABLES_BYTES = 8, 24, 2500, 20_000_000
"""What is predicted: a row, a step, the rollups of a 10-s cell of the trace's buckets and sequences, and the started
blocks of tables and free ones that a file of any size has."""


class Sample(NamedTuple):
    hours: float
    """Record time since the start."""
    rows: int
    rss: int
    file: int


class Soaked(NamedTuple):
    """What a run came to. `growth`: of memory after the warm-up, as a share; None where the run was too short."""

    hours: float
    wall_seconds: float
    frames_sent: int
    frames_stored: int
    rows_sent: int
    rows_stored: int
    rows_kept: int
    gaps: int
    broken: int
    file_bytes: int
    predicted_bytes: int
    growth: float | None
    samples: list[Sample]

    def verdicts(self) -> dict[str, bool | None]:
        return {
            "no loss": self.frames_stored == self.frames_sent
            and self.rows_stored == self.rows_sent
            and self.gaps == self.broken == 0,
            "file as predicted": self.file_bytes <= self.predicted_bytes,
            "memory flat": None if self.growth is None else self.growth < MOST_GROWTH,
        }


def soak(directory: Path, hours: float) -> Soaked:
    """Send `hours` of record time. The environment's places must lie in `directory`, whose path is short."""
    trace, started = LoopedTrace(TRACE), time.time()
    station = StationUnderTest(directory, engine=False).start()
    try:
        samples, frames, rows = _send(station, trace, started - Keep().raw_seconds - hours * 1800, hours)
        seen = station.wait(lambda now: now.store.rows >= rows, "all rows")
        assert station.terminate() == 0
    finally:
        station.close()
    with duckdb.connect(str(station.store), read_only=True) as connection:
        (stored, gaps, kept, steps) = connection.execute(
            """SELECT (SELECT max(last_frame) FROM engines WHERE engine = ?), (SELECT count(*) FROM gaps),
                 (SELECT count(*) FROM rows), (SELECT count(*) FROM steps)""",
            [ENGINE],
        ).fetchall()[0]
        in_figures = rows_ever(connection)
    most_kept = max(kept, rows - kept)  # of removed rows the file keeps the room
    predicted = (
        ROW_BYTES * most_kept + STEP_BYTES * max(steps, frames - steps) + round(CELL_BYTES * hours * 360) + TABLES_BYTES
    )
    return Soaked(
        hours, time.time() - started, frames, int(stored), rows, in_figures, kept, gaps, seen.loss.broken_messages,
        station.store.stat().st_size, predicted, growth(samples), samples,
    )  # fmt: skip


def growth(samples: list[Sample]) -> float | None:
    """By how much a line through memory after the warm-up rises over a day of record time, as a share of its start.

    Without as much as the file is large: DuckDB holds the blocks it read, up to the limit that the store sets.
    """
    if samples[-1].hours < LEAST_HOURS:
        return None
    warm = [sample for sample in samples if sample.hours >= WARM_HOURS]
    slope, level = np.polyfit([one.hours for one in warm], [one.rss - one.file for one in warm], 1)
    return float(slope * 24 / (level + slope * WARM_HOURS))


def _send(station: StationUnderTest, trace: LoopedTrace, start: float, hours: float) -> tuple[list[Sample], int, int]:
    """Samples, frames and rows sent. Never more is under way than the station takes: it drops what it can't hold."""
    assert station.process is not None
    memory = psutil.Process(station.process.pid).memory_info
    samples: list[Sample] = []
    frames = rows = 0
    due = 0.0
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.setsockopt(zmq.LINGER, 30_000)
        push.connect(ipc(Sockets(station.run_dir).telemetry))
        seen = station.snapshot()
        for payload, ts, many in trace.frames(start, hours * 3600):
            push.send(payload)
            frames, rows = frames + (many > 0), rows + many
            if time.monotonic() < due and seen is not None and rows - seen.store.rows < IN_FLIGHT_ROWS:
                continue
            seen = station.wait(lambda now: rows - now.store.rows < IN_FLIGHT_ROWS, "rows taken in")  # noqa: B023
            if time.monotonic() >= due:
                due = time.monotonic() + SAMPLE_SECONDS
                samples.append(Sample((ts - start) / 3600, seen.store.rows, memory().rss, seen.store.bytes))
    return samples, frames, rows


@contextlib.contextmanager
def places() -> Iterator[Path]:
    """A short directory of one's own that the environment points into."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        for variable, folder in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            os.environ[f"SPECDECK_{variable}_DIR"] = f"{name}/{folder}"
        yield Path(name)


def main(hours: float = HOURS) -> bool:
    with places() as directory:
        found = soak(directory, hours)
    mb = [round(one.rss / 1e6) for one in found.samples]
    print(
        f"{found.hours:g} h of record time in {found.wall_seconds:.0f} s: {found.frames_sent} frames, "
        f"{found.rows_sent} rows sent, {found.frames_stored} and {found.rows_stored} stored, {found.gaps} gaps; "
        f"file {found.file_bytes / 1e6:.1f} MB, predicted at most {found.predicted_bytes / 1e6:.1f} MB; "
        f"memory {mb[0]} to {mb[-1]} MB, at most {max(mb)} MB, growth after the warm-up "
        + ("not known from so short a run" if found.growth is None else f"{100 * found.growth:.1f} % a day")
    )
    verdicts = found.verdicts()
    for claim, held in verdicts.items():
        print(f"{'not tested' if held is None else 'holds' if held else 'DOES NOT HOLD'}: {claim}")
    every = max(1, len(found.samples) // 200)
    figures: dict[str, Any] = found._asdict() | {
        "samples": [one._asdict() for one in found.samples[::every]],
        "verdicts": verdicts,
        "trace": TRACE.name,
        "retention_clock": "wall",
    }
    print(write("soak", figures))
    return all(held is not False for held in verdicts.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=HOURS)
    sys.exit(0 if main(parser.parse_args().hours) else 1)
