"""What each engine was doing at a moment of a store, as its last step shows it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import duckdb
import msgspec
import numpy as np

from engine.frames import COLUMNS, UNKNOWN, PackedStep
from engine.records import LIMITS, EngineRecord
from store.counts import Ints
from store.record_tables import PROBES
from store.rowbatch import K_ASKED, LIMIT
from store.sql import only_row

_LAST: Final = """WITH last AS (SELECT engine, max(steps.id) AS id FROM steps JOIN engines e ON engine_run = e.id
    WHERE steps.ts > $since AND steps.ts <= $until GROUP BY engine)
  SELECT e.engine, engine_run, record, steps.id, number, steps.ts, duration_ms, k_verify, k_draft, running, waiting,
    prefill_tokens, probe, policy, limit_draft, decode_rows
  FROM last JOIN steps USING (id) JOIN engines e ON engine_run = e.id ORDER BY e.engine"""


class LastStep(NamedTuple):
    """The last step of an engine before a moment. `matrix`: its rows as the store has them."""

    engine: str
    run: int
    record: EngineRecord
    step: PackedStep
    matrix: Ints


def last_steps(connection: duckdb.DuckDBPyConnection, since: float, until: float) -> list[LastStep]:
    """Of each engine the last step that ended in (since, until], Unix seconds."""
    return [_last(connection, row) for row in connection.execute(_LAST, {"since": since, "until": until}).fetchall()]


def live_sequences(connection: duckdb.DuckDBPyConnection, run: int, ts: float) -> dict[str, int]:
    """Sequences of a run that had arrived by `ts` and not finished, by workload: of each that had any by then."""
    rows = connection.execute(
        """SELECT workload, count(*) FILTER (id NOT IN (
             SELECT sequence FROM finishes WHERE engine_run = $run AND sequence IS NOT NULL AND ts <= $ts))
           FROM sequences WHERE engine_run = $run AND ts <= $ts GROUP BY workload""",
        {"run": run, "ts": ts},
    ).fetchall()
    return dict(rows)


def finished_since(connection: duckdb.DuckDBPyConnection, run: int, since: float, until: float) -> bool:
    """Whether a sequence of a run left the engine in [since, until]."""
    (count,) = only_row(
        connection, "SELECT count(*) FROM finishes WHERE engine_run = ? AND ts >= ? AND ts <= ?", [run, since, until]
    )
    return bool(count)


def _last(connection: duckdb.DuckDBPyConnection, row: tuple[Any, ...]) -> LastStep:
    (
        engine, run, text, number, step, ts, duration, k_verify, k_draft, running, waiting, prefill, probe, policy,
        limit, rows,
    ) = row  # fmt: skip
    record = msgspec.json.decode(text, type=EngineRecord)
    packed = PackedStep(
        step, ts, duration, k_verify, k_draft, running, waiting, prefill, None if probe is None else PROBES[probe],
        policy, LIMITS[limit], rows, b"",
    )  # fmt: skip
    return LastStep(engine, run, record, packed, _matrix(connection, number, record))


def _matrix(connection: duckdb.DuckDBPyConnection, step: int, record: EngineRecord) -> Ints:
    """What was asked for, where the batch K can't move: nobody needs the rows otherwise."""
    if record.batch_k != "fixed" and record.data_parallel_size == 1:
        return np.zeros((len(COLUMNS), 0), dtype=np.int64)
    asked = connection.execute("SELECT k_asked, limit_term FROM rows WHERE step = ?", [step]).fetchall()
    matrix = np.full((len(COLUMNS), len(asked)), UNKNOWN, dtype=np.int64)
    matrix[K_ASKED], matrix[LIMIT] = [k for k, _ in asked], [limit for _, limit in asked]
    return matrix
