"""Step times by what a step had to do: kept by the hour, read with the steps that are not in yet."""

from __future__ import annotations

from typing import Final

import duckdb

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
FROM steps WHERE ts >= {{first}} AND ts < {{last}} AND (probe IS NULL OR {_GOES_ON}) GROUP BY ALL"""


def roll_up_steps(connection: duckdb.DuckDBPyConnection, until: float) -> None:
    """Add the steps of whole 10-s cells that ended before `until`, and close the hours that are over."""
    done, edge = progress.up_to(connection, MARK), until // CELL_SECONDS * CELL_SECONDS
    if edge <= done:
        return
    connection.execute(f"INSERT INTO step_times {_FROM_STEPS.format(first=repr(done), last=repr(edge))}")
    if COARSEST.floor(edge) > COARSEST.floor(done):
        _join(connection, COARSEST.floor(done), COARSEST.floor(edge))
    progress.move(connection, MARK, edge)


def step_times(connection: duckdb.DuckDBPyConnection) -> dict[Runner, StepTimes]:
    """All that is known of each engine and model version, steps included that are not rolled up yet."""
    rest = _FROM_STEPS.format(first=repr(progress.up_to(connection, MARK)), last="1e12")
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
