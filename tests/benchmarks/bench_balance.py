"""What it costs to say what speculation cost and saved: a balance of 5 minutes, 1 h and 6 h of a busy engine's rows.

    python -m tests.benchmarks.bench_balance [--rows 10000000]

Every row is read anew each time. Prints seconds and CPU seconds of each window, then all of them as JSON. A console
asks again after twenty times as long as an answer took, so that it takes about a twentieth of a core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from engine.records import CAUSES, LIMITS
from store.balance.balance import balance
from store.database import Store
from store.ingest import Ingest
from store.step_models import step_models
from tests.benchmarks.bench_history import machine
from tests.benchmarks.bench_ingest import START, engine_record

HOURS: Final = 6
BATCH: Final = 32
WORKLOADS: Final = 8
TIMES: Final = 5

_FULL, _NONE, _STATIC = CAUSES.index("full"), CAUSES.index("none"), LIMITS.index("static")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "balance.duckdb") as store:
        fill(store, arguments.rows // BATCH)
        models = step_models(store.connection)
        found: dict[str, object] = {"rows": arguments.rows}
        for label, seconds in (("5 min", 300.0), ("1 h", 3600.0), ("6 h", HOURS * 3600.0)):
            wall, cpu, rows = [], [], 0
            for _ in range(TIMES):
                began, used = time.perf_counter(), time.process_time()
                told = balance(store.connection, models, source="bench", window=seconds)
                wall.append(time.perf_counter() - began)
                cpu.append(time.process_time() - used)
                rows = told.total.decode_rows
                assert told.total.saved is not None
            found[label] = {"rows": rows, "s": round(statistics.median(wall), 3), "cpu_s": round(min(cpu), 3)}
            print(f"{label:6} {rows:12,} rows {statistics.median(wall):8.3f} s  {min(cpu):8.3f} s of CPU", flush=True)
    print(json.dumps({"benchmark": "balance", **found, **machine()}))


def fill(store: Store, steps: int) -> None:
    """Every 20th step is a vanilla one; the others draft 4 for most rows. Eight workloads in 48 buckets."""
    ingest = Ingest(store)
    ingest.record(engine_record(START))
    ingest.flush()
    connection, apart = store.connection, HOURS * 3600 / steps
    connection.execute(
        f"""INSERT INTO buckets SELECT i, 'e0', 'workload-' || (i % {WORKLOADS}),
              (['0-512', '512-2048', '2048-8192'])[1 + i // {WORKLOADS} % 3],
              (['0', '>1'])[1 + i // {3 * WORKLOADS}], model_version FROM range({6 * WORKLOADS}) t(i), engines"""
    )
    connection.execute(
        f"""INSERT INTO steps SELECT i, engines.id, i, i, {START} + i * {apart!r},
              CASE WHEN i % 20 = 0 THEN 30 + hash(i) % 3 ELSE 40 + hash(i) % 20 END, k, k, {BATCH}, 0, 0, NULL, 1,
              {_STATIC}, {BATCH}, {BATCH} * (1 + k), {BATCH * 600}
            FROM (SELECT i, CASE WHEN i % 20 = 0 THEN 0 ELSE 4 END AS k FROM range({steps}) t(i)), engines"""
    )
    connection.execute(
        f"""INSERT INTO rows SELECT step, row, (row * 7 + step // 2000) % {6 * WORKLOADS}, k, {_STATIC}, drafted,
              drafted, 0, accepted, accepted + 1, 600, CASE WHEN k = 0 THEN {_NONE} ELSE {_FULL} END, false
            FROM (SELECT *, hash(step * 31 + row) % (drafted + 1) AS accepted FROM (
              SELECT step, row, k, CASE WHEN hash(step * 33 + row) % 5 > 0 THEN k ELSE 0 END AS drafted FROM (
                SELECT i AS step, CASE WHEN i % 20 = 0 THEN 0 ELSE 4 END AS k FROM range({steps}) a(i)),
                range({BATCH}) b(row)))
            ORDER BY step // 256, row, step"""
    )
    connection.execute("CHECKPOINT")


if __name__ == "__main__":
    main()
