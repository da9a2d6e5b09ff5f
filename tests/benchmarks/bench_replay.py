"""How fast a recorded trace is opened: JSONL.zst and the compact form → judged store on disk, as `replay` does it.

    python -m tests.benchmarks.bench_replay [--rows 1000000] [--batch 256 --batch 8] [--profile]

For each form and batch size prints bytes a row of the file, seconds until everything is taken in and until it is
judged, sequence-steps a second until then, and the peak memory of the process that did it; and the machine. The targets
of the design are 500,000 a second from the compact form and 100,000 from JSONL.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import platform
import pstats
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from engine.records import FinishRecord, Record, Row, SequenceRecord, StepRecord
from store.database import Store
from store.ingest import Ingest
from store.judging import judge_all
from store.source import take_in
from store.trace import TraceWriter
from tests.benchmarks.bench_ingest import START, WORKLOADS, engine_record

ENDINGS = (".jsonl.zst", ".parquet")
STEP_SECONDS = 0.033


def records(rows: int, batch: int) -> Iterator[Record]:
    """Steps of `batch` sequences of some 300 steps each, drafted and accepted over all that K = 4 can give."""
    rng = random.Random(1)
    yield engine_record()
    shapes = [(d, a, "full" if d == 4 else "no_proposal") for d in range(5) for a in range(d + 1)]
    live: dict[str, list[int]] = {}  # name → context, steps left
    arrived = 0
    for number in range(1, rows // batch + 1):
        now = round(START + number * STEP_SECONDS, 6)
        for name in [name for name, (_, left) in live.items() if left <= 0]:
            del live[name]
            yield FinishRecord("e0", name, now, "stop", 300)
        while len(live) < batch:
            arrived += 1
            live[str(arrived)] = [rng.randrange(16, 4000), rng.randrange(20, 600)]
            yield SequenceRecord("e0", str(arrived), now, WORKLOADS[arrived % 8], rng.choice((0.0, 0.8)), 100)
        taken = []
        for name, state in live.items():
            drafted, accepted, cause = rng.choice(shapes)
            taken.append(Row(name, 4, "static", drafted, drafted, 0, accepted, accepted + 1, state[0], cause))  # type: ignore[arg-type]
            state[0] += accepted + 1
            state[1] -= 1
        yield StepRecord("e0", number, number, now, STEP_SECONDS * 1000, 4, 4, batch, 0, taken, 0, None, 1, "static")


def written(folder: Path, rows: int, batch: int) -> list[Path]:
    paths = [folder / f"of-{batch}{ending}" for ending in ENDINGS]
    with TraceWriter(paths[0]) as lines, TraceWriter(paths[1]) as compact:
        for record in records(rows, batch):
            lines.write(record)
            compact.write(record)
    return paths


def opened(path: Path) -> dict[str, float]:
    """Take a trace into a store on disk, and judge it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "trace.duckdb") as store:
        ingest = Ingest(store)
        began = time.perf_counter()
        take_in(path, ingest)
        taken = time.perf_counter()
        judge_all(store.connection)
        judged = time.perf_counter()
        rows = ingest.counts.rows
    return {
        "rows": rows,
        "bytes_per_row": round(path.stat().st_size / rows, 2),
        "taken_in_seconds": round(taken - began, 2),
        "judged_seconds": round(judged - began, 2),
        "rows_per_second": round(rows / (taken - began)),
        "rows_per_second_judged": round(rows / (judged - began)),
        "cpu_seconds": round(time.process_time(), 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "mb_before": round(before / 1024),
    }


def measured(path: Path) -> dict[str, float]:
    """The same in a process of its own, whose memory holds nothing else."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_replay", "--open", str(path)]
    done = subprocess.run(command, check=True, capture_output=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, action="append", help="sequences a step; may be given again")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open is not None:
        print(json.dumps(opened(arguments.open)))
        return
    machine = {"machine": platform.node(), "cpu": f"{platform.machine()}, {psutil.cpu_count()} cores"}
    with tempfile.TemporaryDirectory() as folder:
        for batch in arguments.batch or (256, 8):
            for path in written(Path(folder), arguments.rows, batch):
                if arguments.profile:
                    profile = cProfile.Profile()
                    profile.runcall(opened, path)
                    pstats.Stats(profile).sort_stats("tottime").print_stats(22)
                    continue
                result = measured(path)
                form = path.name.partition(".")[2]
                print(json.dumps({"benchmark": "replay", "form": form, "batch": batch, **result, **machine}))
                path.unlink()


if __name__ == "__main__":
    main()
