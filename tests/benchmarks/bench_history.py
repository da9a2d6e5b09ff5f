"""What a week of 500 buckets costs: the report over it, a station's start on it, and the picture 4 times a second.

    python -m tests.benchmarks.bench_history

Prints milliseconds and the machine. The design asks for a picture in 10 ms (95 of 100).
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from store.database import Store
from store.levels import DAY
from store.preload import preload
from store.report import report
from store.windows import LiveWindows
from tests.benchmarks.history import BUCKETS, END, fill

SNAPSHOTS = 200
SNAPSHOT_SECONDS = 0.25


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "week.duckdb") as store:
        filled = fill(store)
        week = milliseconds(lambda: report(store.connection, source="week", window=7 * DAY, at=END))
        hour = milliseconds(lambda: report(store.connection, source="week", window=3600.0, at=END))
        windows = LiveWindows()
        loaded = milliseconds(lambda: preload(windows, store.connection, END))
        pictures = [
            milliseconds(lambda now=END + number * SNAPSHOT_SECONDS: (windows.buckets(now), windows.total(now)))  # type: ignore[misc]
            for number in range(SNAPSHOTS)
        ]
        figures = {
            "benchmark": "history",
            "buckets": BUCKETS,
            "shown": len(windows.buckets(END + SNAPSHOTS * SNAPSHOT_SECONDS)),
            "fill_s": round(filled, 1),
            "store_mb": round(store.size() / 1e6),
            "report_week_ms": round(week),
            "report_hour_ms": round(hour),
            "preload_ms": round(loaded),
            "picture_ms_median": round(float(np.median(pictures)), 2),
            "picture_ms_p95": round(float(np.percentile(pictures, 95)), 2),
            "machine": platform.node(),
            "cpu": f"{platform.machine()}, {psutil.cpu_count()} cores",
        }
    print(json.dumps(figures))


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
