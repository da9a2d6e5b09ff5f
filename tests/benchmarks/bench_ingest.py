"""How fast frames become rows: wire frames of a full batch → attributed, bucketed, in live windows and in DuckDB.

    python -m tests.benchmarks.bench_ingest [--rows 2000000] [--profile]

Prints sequence-steps a second (decoding, live windows with 4 snapshots a second, DuckDB and
rollups included), bytes a stored row, and the
machine. The target of the design is 500,000 a second.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import platform
import pstats
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from engine.frames import (
    CAUSE_CODE,
    LIMIT_CODE,
    WIRE_VERSION,
    Announcement,
    ArrivedSequence,
    FinishedSequence,
    Frame,
    PackedStep,
    decode,
    encode,
    pack_columns,
)
from engine.records import EngineRecord, PolicyMode
from store.database import Store
from store.ingest import Ingest
from store.windows import LiveWindows

BATCH = 256
STEP_SECONDS = 0.033
START = 1_790_000_000.0
FLUSH_SECONDS = 1.0
SNAPSHOT_SECONDS = 0.25
WORKLOADS = [f"workload-{number}" for number in range(8)]


def engine_record(ts: float = START) -> EngineRecord:
    static = PolicyMode(mode="static", k=4)
    return EngineRecord(
        engine="e0", ts=ts, vllm="0.32.0", target="target", drafter="drafter", method="eagle3", max_k=4,
        batch_k="free", max_num_seqs=BATCH, data_parallel_size=1, device="cuda", async_scheduling=True,
        configured=static, resolved=static, boot="bench",
    )  # fmt: skip


def messages(
    rows: int,
    start: float = START,
    workloads: Sequence[str] = WORKLOADS,
    temperatures: Sequence[float] = (0.0, 0.8),
    *,
    batch: int = BATCH,
    step_seconds: float = STEP_SECONDS,
) -> Iterator[bytes]:
    """Encoded messages: an announcement, then steps of `batch` sequences of some 300 steps each.

    Contexts are spread over 16 to 6,000 tokens, drafted and accepted over all that K = 4 can give, each as often.
    """
    random.seed(1)
    yield encode(Announcement(WIRE_VERSION, engine_record(start), "bench", 0, [], 1, None, 0))
    shapes = [(d, a) for d in range(5) for a in range(d + 1)]
    live: dict[int, list[int]] = {}  # handle → context, steps left
    handle = 0
    for number in range(1, rows // batch + 1):
        now = start + number * step_seconds
        ended = [seq for seq, (_, left) in live.items() if left <= 0]
        for seq in ended:
            del live[seq]
        arrived = []
        while len(live) < batch:
            handle += 1
            live[handle] = [random.randrange(16, 4000), random.randrange(20, 600)]
            tag, heat = workloads[handle % len(workloads)], random.choice(temperatures)
            arrived.append(ArrivedSequence(handle, f"r{handle}", now, tag, heat, 100, False, "speculative"))
        columns: list[list[int]] = [[] for _ in range(10)]
        for seq, state in live.items():
            drafted, accepted = random.choice(shapes)
            cause = CAUSE_CODE["full" if drafted == 4 else "no_proposal"]
            values = (seq, 4, LIMIT_CODE["static"], drafted, drafted, 0, accepted, accepted + 1, state[0], cause)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
            state[0] += accepted + 1
            state[1] -= 1
        step = PackedStep(
            number, now, step_seconds * 1000, 4, 4, batch, 0, 0, None, 1, "static", batch, pack_columns(columns)
        )
        finishes = [FinishedSequence(seq, now, "stop", 300) for seq in ended]
        yield encode(Frame(WIRE_VERSION, "e0", "bench", number, arrived, step, finishes))


def run(payloads: list[bytes], path: Path) -> dict[str, float]:
    with Store.open(path) as store:
        windows = LiveWindows()
        ingest = Ingest(store, windows)
        began = flushed = shown_at = time.perf_counter()
        snapshots = []
        for number, payload in enumerate(payloads):
            message = decode(payload)
            received = time.perf_counter()
            if isinstance(message, Frame):
                ingest.frame(message, received)
            else:
                ingest.announcement(message, received)
            if received - flushed >= FLUSH_SECONDS:
                flushed = received
                ingest.flush()
            if received - shown_at >= SNAPSHOT_SECONDS:
                shown_at = received
                shown = windows.buckets(START + number * STEP_SECONDS)
                snapshots.append(time.perf_counter() - received)
        ingest.close()
        seconds = time.perf_counter() - began
        store.connection.execute("CHECKPOINT")
        rows = ingest.counts.rows
        return {
            "rows": rows,
            "seconds": round(seconds, 3),
            "rows_per_second": round(rows / seconds),
            "bytes_per_row": round(store.size() / rows, 2),
            "buckets": len(shown),
            "snapshot_ms_median": round(statistics.median(snapshots) * 1000, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    payloads = list(messages(arguments.rows))
    machine = {
        "machine": platform.node(),
        "cpu": f"{platform.machine()}, {psutil.cpu_count()} cores",
        "load": round(psutil.getloadavg()[0], 2),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.duckdb"
        if arguments.profile:
            profile = cProfile.Profile()
            profile.runcall(run, payloads, path)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        result = run(payloads, path)
    print(json.dumps({"benchmark": "ingest", **result, **machine}))


if __name__ == "__main__":
    main()
