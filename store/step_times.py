"""Step times by what a step had to do: kept by the hour, read with the steps that are not in yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.step_time.counts import StepTimes
from store import progress
from store.bands import CONTEXT_BAND, DURATION_BIN, PREFILL_BAND
from store.levels import CELL_SECONDS, COARSEST
from store.load import Runner

MARK: Final = "step_times"

_KEYS: Final = "half, k_verify, k_draft, batch, context_band, prefill_band, duration_bin"
_SUMS: Final = "count, duration_us, tokens, context, prefill"
_VERIFIED_K: Final = """CASE WHEN decode_rows > 0
  AND engine_run IN (SELECT id FROM engines WHERE batch_k = 'fixed' OR data_parallel_size > 1)
  THEN ceil(verified / decode_rows - 1)::USMALLINT ELSE k_verify END"""
"""Where the batch K can't move, trimming alone makes steps differ: those with few tokens to verify are told from those
with many by the drafts verified for a row, rounded up."""
_GOES_ON: Final = f"""(engine_run, number - 1, probe) IN (SELECT engine_run, number, probe FROM steps
  WHERE probe IS NOT NULL AND ts >= {{first}} - {CELL_SECONDS} AND ts < {{last}})"""
"""The first of a block of probe steps is left out, which has no such step right before it: its batch is in transition.
"""
_FROM_STEPS: Final = f"""SELECT (floor(ts / 3600) * 3600)::BIGINT AS cell, engine_run,
  floor(ts / {CELL_SECONDS})::BIGINT % 2 AS half, {_VERIFIED_K} AS k_verify, k_draft, decode_rows AS batch,
  {CONTEXT_BAND} AS context_band, {PREFILL_BAND} AS prefill_band, {DURATION_BIN} AS duration_bin, count(*) AS count,
  sum((duration_ms * 1000)::UBIGINT) AS duration_us, sum(verified) AS tokens, sum(context_tokens) AS context,
  sum(prefill_tokens) AS prefill
FROM steps WHERE ts >= {{first}} AND ts < {{last}} AND (probe IS NULL OR {_GOES_ON}) {{runs}} GROUP BY ALL"""


def roll_up_steps(connection: duckdb.DuckDBPyConnection, until: float) -> None:
    """Add the steps of whole 10-s cells that ended before `until`, and close the hours that are over."""
    done, edge = progress.up_to(connection, MARK), until // CELL_SECONDS * CELL_SECONDS
    if edge <= done:
        return
    steps = _FROM_STEPS.format(first=repr(done), last=repr(edge), runs="")
    connection.execute(f"INSERT INTO step_times {steps}")
    if COARSEST.floor(edge) > COARSEST.floor(done):
        _join(connection, COARSEST.floor(done), COARSEST.floor(edge))
    progress.move(connection, MARK, edge)


def step_times(connection: duckdb.DuckDBPyConnection) -> dict[Runner, StepTimes]:
    """All that is known of each engine and model version, steps included that are not rolled up yet."""
    rest = _FROM_STEPS.format(first=repr(progress.up_to(connection, MARK)), last="1e12", runs="")
    named = connection.execute(
        f"""SELECT engine, model_version, {_KEYS}, {", ".join(f"sum({name})" for name in _SUMS.split(", "))}
            FROM (SELECT * FROM step_times UNION ALL {rest}) t JOIN engines e ON t.engine_run = e.id GROUP BY ALL"""
    ).fetchnumpy()
    engines, versions, *columns = named.values()
    found = {}
    names = list(zip(engines.tolist(), versions.tolist(), strict=True))
    for name in dict.fromkeys(names):
        inside = [place for place, other in enumerate(names) if other == name]
        keys = dict(zip(_KEYS.split(", "), (column[inside] for column in columns), strict=False))
        sums = dict(zip(_SUMS.split(", "), (column[inside] for column in columns[len(keys) :]), strict=True))
        duration = sums.pop("duration_us") / 1000
        found[Runner(*name)] = StepTimes.of(**keys, **sums, duration_ms=duration)
    return found


Counted = npt.NDArray[np.int64]
"""Step times as whole numbers, n × 12: the columns of the table after `engine_run`, by key ascending, durations in µs.
Sums of them do not depend on the order in which they were made."""


def counted_steps(connection: duckdb.DuckDBPyConnection, runs: Sequence[int], first: float, last: float) -> Counted:
    """Of the steps of these runs that ended in [first, last), Unix seconds, multiples of 10."""
    inside = f"AND engine_run IN ({', '.join(map(str, runs))})"
    return _counted(connection, f"({_FROM_STEPS.format(first=repr(first), last=repr(last), runs=inside)})")


def counted_hours(connection: duckdb.DuckDBPyConnection, runs: Sequence[int], first: float, last: float) -> Counted:
    """The same from the table, by hours that are over: `first` and `last` are multiples of 3600."""
    inside = f"cell >= {first!r} AND cell < {last!r} AND engine_run IN ({', '.join(map(str, runs))})"
    return _counted(connection, f"(FROM step_times WHERE {inside})")


def counted_together(*parts: Counted) -> Counted:
    """Rows of one key become one."""
    rows = np.concatenate(parts)
    keys = len(_KEYS.split(", "))
    rows = rows[np.lexsort(rows[:, :keys].T[::-1])]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[1:, :keys] != rows[:-1, :keys]).any(axis=1)
    starts = np.flatnonzero(fresh)
    if not len(starts):
        return nothing_counted()
    return np.concatenate([rows[starts, :keys], np.add.reduceat(rows[:, keys:], starts, axis=0)], axis=1)


def nothing_counted() -> Counted:
    return np.empty((0, len(_COLUMNS)), dtype=np.int64)


def timed(counted: Counted) -> StepTimes:
    columns: dict[str, npt.NDArray[np.int64] | npt.NDArray[np.float64]] = dict(zip(_COLUMNS, counted.T, strict=True))
    columns["duration_ms"] = columns.pop("duration_us") / 1000
    return StepTimes.of(**columns)


def write_counted(connection: duckdb.DuckDBPyConnection, run: int, hour: float, counted: Counted) -> None:
    """Put step times into the table, as steps of a run in the hour that begins at `hour`."""
    columns = {name: pa.array(column) for name, column in zip(_COLUMNS, counted.T, strict=True)}
    connection.register("counted", pa.table(columns))
    try:
        connection.execute(f"INSERT INTO step_times SELECT {int(hour)}, {run}, * FROM counted")
    finally:
        connection.unregister("counted")


def _counted(connection: duckdb.DuckDBPyConnection, source: str) -> Counted:
    sums = ", ".join(f"sum({name})" for name in _SUMS.split(", "))
    found = connection.execute(f"SELECT {_KEYS}, {sums} FROM {source} GROUP BY {_KEYS} ORDER BY {_KEYS}").fetchnumpy()
    return np.stack([np.asarray(column).astype(np.int64) for column in found.values()], axis=1)


_COLUMNS: Final = tuple(f"{_KEYS}, {_SUMS}".split(", "))


def _join(connection: duckdb.DuckDBPyConnection, first: float, last: float) -> None:
    """Rows of one key, added 10 s by 10 s, become one."""
    sums = ", ".join(f"sum({name})" for name in _SUMS.split(", "))
    inside = f"cell >= {first!r} AND cell < {last!r}"
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE joined AS
            SELECT cell, engine_run, {_KEYS}, {sums} FROM step_times WHERE {inside} GROUP BY ALL"""
    )
    connection.execute(f"DELETE FROM step_times WHERE {inside}")
    connection.execute("INSERT INTO step_times FROM joined")
    connection.execute("DROP TABLE joined")
