"""A made-up week of 500 buckets, written by SQL: what a store looks like that has been recorded into for long.

Every bucket is busy in one 10-s cell of twenty; the cells of a bucket differ, and so does its acceptance.
"""

from __future__ import annotations

import time
from typing import Final

from engine.records import CAUSES, LIMITS
from store import progress
from store.counts import RATIO_UNIT
from store.database import Store
from store.ingest import Ingest
from store.levels import DAY, FINEST
from store.rollup import roll_up
from tests.benchmarks.bench_ingest import engine_record

BUCKETS: Final = 500
DAYS: Final = 7
WORKLOADS: Final = [f"workload-{number}" for number in range(50)]
TEMPERATURES: Final = (0.0, 0.4, 0.9)
"""Together with the contexts of `bench_ingest.messages` they come to 450 of the buckets."""

_BUSY: Final = "hash(bucket * 7919 + cell) % 20 = 0"
_STATIC, _FULL = LIMITS.index("static"), CAUSES.index("full")


def fill(store: Store, end: float) -> float:
    """Write the week before `end` (Unix seconds, a multiple of 10) into an empty store; the seconds that took."""
    began = time.perf_counter()
    cells = f"""(SELECT b.id AS bucket, c.cell FROM buckets b,
      (SELECT {end - DAYS * DAY!r}::BIGINT + {FINEST.seconds} * i AS cell
       FROM range({int(DAYS * DAY / FINEST.seconds)}) t(i)) c)"""
    ingest = Ingest(store)
    ingest.record(engine_record(end - DAYS * DAY))
    ingest.flush()
    connection = store.connection
    connection.execute(
        f"""INSERT INTO buckets SELECT i, 'e0', 'workload-' || (i % 50),
              (['0-512', '512-2048', '2048-8192'])[1 + i // 50 % 3],
              (['0', '(0,0.5]', '(0.5,1]', '>1'])[1 + i // 150 % 4], model_version
            FROM range({BUCKETS}) t(i), engines"""
    )
    connection.execute(
        f"""INSERT INTO rollup_10s SELECT cell, bucket, 4, {_STATIC}, 4, a, {_FULL}, false,
              1 + hash(bucket + a * 31 + cell) % (5 + 4 * a), count * (a + 1), count * 4, count * 4
            FROM (SELECT cell, bucket, a::USMALLINT AS a, 1 + hash(bucket + a * 31 + cell) % (5 + 4 * a) AS count
                  FROM {cells}, range(5) t(a) WHERE {_BUSY})"""
    )
    connection.execute(
        """INSERT INTO load_10s SELECT cell, bucket, 16, 256, sum(count), sum(emitted), sum(count) * 40000,
              sum(emitted) * 12, sum(emitted) * 12 * 600, 0 FROM rollup_10s GROUP BY ALL"""
    )
    connection.execute(
        f"""INSERT INTO sequence_rollup_10s SELECT cell, bucket, (bucket * 1000 + cell // 60 % 1000)::UINTEGER,
              sum(count), sum(count), sum(count * accepted * {RATIO_UNIT // 4}::BIGINT),
              [sum(count), sum(count), sum(count), sum(count)],
              [{", ".join(f"sum(count * least(accepted, {m}))" for m in range(1, 5))}], 0, 0
            FROM rollup_10s GROUP BY ALL"""
    )
    connection.execute("UPDATE engines SET last_ts = ?", [end])
    progress.move(connection, f"rollup_{FINEST.name}", end)
    roll_up(connection, end)
    connection.execute("CHECKPOINT")
    return time.perf_counter() - began
