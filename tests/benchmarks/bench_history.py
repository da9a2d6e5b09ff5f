"""What a week of 500 buckets costs: reports over it, a station's start on it, pictures and ingest as the station does
them, with rollups, retention and the judge on; and what rows take on disk and in a replay.

    python -m tests.benchmarks.bench_history [--seconds 20]

Prints each figure with the design's target and the ratio to it (1 or more: met), then all of them as JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from console.picturing.bucket_views import BucketViews
from console.station.recorder import Received, Recorder, open_recorder
from console.station.snapshot import figured
from engine.frames import Announcement, Frame, decode
from store.database import Store
from store.export import export
from store.ingest import Ingest
from store.judging import Judging
from store.levels import DAY
from store.replay import replay_headless
from store.report import report
from tests.benchmarks.bench_ingest import BATCH, START, STEP_SECONDS, messages
from tests.benchmarks.history import BUCKETS, TEMPERATURES, WORKLOADS, fill

PICTURE_SECONDS = 0.25
PICTURES = 200
STEPS_A_PICTURE = round(PICTURE_SECONDS / STEP_SECONDS)
INGEST_ROWS = 2_000_000
STORED_ROWS = 3_000_000
REPLAYED_ROWS = 300_000


class Figure(NamedTuple):
    name: str
    value: float
    unit: str
    target: float | None = None
    more_is_better: bool = False

    def line(self) -> str:
        shown = f"{self.name:52} {self.value:12,.2f} {self.unit}"
        if self.target is None:
            return shown
        ratio = self.value / self.target if self.more_is_better else self.target / self.value
        return f"{shown:80} target {self.target:10,g}   ratio {ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of pictures beside a recording thread")
    arguments = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for found in (week(Path(folder), arguments.seconds), stored(Path(folder))):
            for figure in found:
                print(figure.line(), flush=True)
                figures.append(figure)
    print(json.dumps({"benchmark": "history", "buckets": BUCKETS, **machine(), **{f.name: f.value for f in figures}}))


def week(folder: Path, seconds: float) -> Iterable[Figure]:
    """A store of a week, and a station's parts on it. Record time goes on where the week ends, from now on."""
    path, end = folder / "week.duckdb", time.time() // 10 * 10
    with Store.open(path) as store:
        fill(store, end)
        judging = Judging(store.cursor())
        yield Figure("judge: the week", milliseconds(judging.catch_up) / 1000, "s")
        judging.save()
        yield Figure("store of the week", store.size() / 1e6, "MB")
        for name, window in (("week", 7 * DAY), ("hour", 3600.0)):
            cost = milliseconds(lambda window=window: report(store.connection, source="", window=window, at=end))  # type: ignore[misc]
            yield Figure(f"report: {name}", cost, "ms")
    began = time.perf_counter()
    recorder = open_recorder(path, lambda kind, text: None)
    yield Figure("station's start on it", (time.perf_counter() - began) * 1000, "ms", 2000)
    quiet = [milliseconds(lambda n=n: picture(recorder, end + n * PICTURE_SECONDS)) for n in range(PICTURES)]  # type: ignore[misc]
    yield from pictures("picture, no traffic", quiet)
    rows = (PICTURES * STEPS_A_PICTURE) * BATCH + INGEST_ROWS + round(seconds / STEP_SECONDS) * BATCH
    frames = list(messages(rows, end + PICTURES * PICTURE_SECONDS, WORKLOADS, TEMPERATURES))
    busy, rest = frames[: 1 + PICTURES * STEPS_A_PICTURE], frames[1 + PICTURES * STEPS_A_PICTURE :]
    yield from pictures("picture after the traffic of its 250 ms", list(beside_traffic(recorder, busy)))
    bulk = rest[: INGEST_ROWS // BATCH]
    yield Figure("ingest, rollups and judge on", ingest_rate(recorder, bulk), "rows/s", 500_000, True)
    yield from pictures("picture beside the recording thread", list(beside_thread(recorder, rest[len(bulk) :])))


VIEWS = BucketViews()


def picture(recorder: Recorder, now: float) -> int:
    return len(figured(recorder, VIEWS, ["e0"], now).buckets)


def pictures(name: str, found: list[float]) -> Iterable[Figure]:
    yield Figure(f"{name}: median", float(np.median(found)), "ms")
    yield Figure(f"{name}: p95", float(np.percentile(found, 95)), "ms", 10)


def take(recorder: Recorder, payload: bytes, received: float | None = None) -> float:
    """Decode and ingest a message, received at its own time unless said; its record time."""
    message = decode(payload)
    if isinstance(message, Announcement):
        recorder.ingest.announcement(message, message.record.ts)
        return message.record.ts
    ts = message.step.ts if message.step is not None else 0.0
    recorder.ingest.frame(message, ts if received is None else received)
    return ts


def flush(recorder: Recorder) -> None:
    recorder.ingest.flush()
    recorder.house.after_flush(recorder.lock)


def beside_traffic(recorder: Recorder, payloads: list[bytes]) -> Iterable[float]:
    """Milliseconds of each picture alone, every fourth after a flush: what the work is, without waiting for a core."""
    now = 0.0
    for number, payload in enumerate(payloads, 1):
        now = take(recorder, payload)
        if number % STEPS_A_PICTURE == 0:
            recorder.ingest.digest()
            if number % (4 * STEPS_A_PICTURE) == 0:
                flush(recorder)
            yield milliseconds(lambda: picture(recorder, now))  # noqa: B023


def ingest_rate(recorder: Recorder, payloads: list[bytes]) -> float:
    """Rows a second, decoding, four pictures and a flush a second, rollups, retention and judge included."""
    before, began = recorder.ingest.counts.rows, time.perf_counter()
    flushed = shown = began
    for payload in payloads:
        clock = time.perf_counter()
        now = take(recorder, payload, clock)
        if clock - shown >= PICTURE_SECONDS:
            shown = clock
            picture(recorder, now)
        if clock - flushed >= 1.0:
            flushed = clock
            flush(recorder)
    flush(recorder)
    return (recorder.ingest.counts.rows - before) / (time.perf_counter() - began)


def beside_thread(recorder: Recorder, payloads: list[bytes]) -> Iterable[float]:
    """The same in real time, while the recorder's thread takes a full batch every step: waits for it included."""
    recorder.start()
    due = time.perf_counter()
    try:
        for number, payload in enumerate(payloads, 1):
            message = decode(payload)
            recorder.put(Received(message, time.time()))
            if number % STEPS_A_PICTURE == 0 and isinstance(message, Frame) and message.step is not None:
                now = message.step.ts
                yield milliseconds(lambda: picture(recorder, now))  # noqa: B023
            due += STEP_SECONDS
            time.sleep(max(0.0, due - time.perf_counter()))
    finally:
        recorder.stop()


def stored(folder: Path) -> Iterable[Figure]:
    """A store of its own, flushed every second of record time and checkpointed: bytes of the file in use a row."""
    with Store.open(folder / "rows.duckdb") as store:
        record(store, STORED_ROWS)
        store.connection.execute("CHECKPOINT")
        size, used, rows = store.connection.execute(
            "SELECT block_size, used_blocks, (SELECT count(*) FROM rows) FROM pragma_database_size()"
        ).fetchall()[0]
        yield Figure("file, all tables", size * used / rows, "bytes a row", 8)
    for name in ("trace.jsonl", "trace.jsonl.zst"):
        with Store.memory() as store:
            record(store, REPLAYED_ROWS)
            export(store.connection, folder / name)
        cost = milliseconds(lambda name=name: replay_headless(folder / name))  # type: ignore[misc]
        yield Figure(f"replay of {name}", REPLAYED_ROWS / cost * 1000, "rows/s", 100_000, True)


def record(store: Store, rows: int) -> None:
    ingest = Ingest(store)
    for number, payload in enumerate(messages(rows)):
        message, now = decode(payload), START + number * STEP_SECONDS
        if isinstance(message, Frame):
            ingest.frame(message, now)
        else:
            ingest.announcement(message, now)
        if number % round(1 / STEP_SECONDS) == 0:
            ingest.flush()
    ingest.close()


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def machine() -> dict[str, object]:
    cores = psutil.cpu_count()
    load = round(psutil.getloadavg()[0], 2)
    return {"machine": platform.node(), "cpu": f"{platform.machine()}, {cores} cores", "load": load}


if __name__ == "__main__":
    main()
