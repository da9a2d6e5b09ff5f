"""Rollups, made by DuckDB: per bucket the joint histogram and the load it lived through, in cells of 10 s, 5 min and
1 h; per sequence and bucket totals in cells of 10 s.

The finest cells are made of raw rows, each coarser level of the one before. A level's mark in `progress` moves in the
transaction that adds to it, so a killed process leaves rollups that are behind but never wrong, and the next flush
catches up. Rows of one key add up: rows that come late for a cell that is already rolled up are simply added.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Final

import duckdb

from engine.records import LIMITS
from store import progress
from store.bands import BATCH_BAND, CONTEXT_BAND
from store.counts import PREFILL, RATIO_UNIT
from store.levels import FINEST, LEVELS, Level
from store.sql import only_row
from store.step_times import roll_up_steps

BEHIND_SECONDS: Final = 20.0
"""A cell is rolled up this long after its end in record time: rows may wait 15 s for their sequence."""

MAX_DEPTH: Final = 16
"""Deepest draft position whose acceptance is kept by sequence."""

DRAFT_STEP: Final = f"(cause <> {PREFILL} AND drafted > 0)"
RATIO: Final = f"coalesce(sum((accepted::BIGINT * {RATIO_UNIT}) // greatest(drafted, 1)) FILTER ({DRAFT_STEP}), 0)"
JOINT_KEYS: Final = "bucket, k_asked, limit_term, drafted, accepted, cause, post_resume"
JOINT_SUMS: Final = """count(*) AS count, sum(emitted) AS emitted, coalesce(sum(proposed), 0) AS proposed,
  coalesce(sum(drafted) FILTER (proposed IS NOT NULL), 0) AS proposed_drafted"""
LOAD_KEYS: Final = "bucket, batch_band, context_band"
LOAD_BANDS: Final = f"{BATCH_BAND} AS batch_band, {CONTEXT_BAND} AS context_band"
LOAD_SUMS: Final = """count(*) AS count, sum(emitted) AS emitted, sum(duration_us) AS duration_us,
  sum(emitted::UBIGINT * decode_rows) AS emitted_batch, sum(emitted::UBIGINT * context_tokens) AS emitted_context,
  sum(prefill_tokens) AS prefill"""
STEP_FACTS: Final = """ts, (duration_ms * 1000)::UBIGINT AS duration_us, decode_rows, context_tokens,
  prefill_tokens"""
"""What the rows of a step need to know of it, from `steps`."""

_RESUMED: Final = f"({DRAFT_STEP} AND post_resume)"
_JUDGED: Final = f"({DRAFT_STEP} AND NOT post_resume AND limit_term <> {LIMITS.index('probe')})"


def sequence_sums(depth: int) -> str:
    """The sums of a sequence, as the columns of `sequence_rollup_10s` after `sequence`."""
    reached = [f"count(*) FILTER ({_JUDGED} AND drafted >= {m})" for m in range(1, depth + 1)]
    matched = [
        f"coalesce(sum(least(accepted, {m})) FILTER ({_JUDGED} AND drafted >= {m}), 0)" for m in range(1, depth + 1)
    ]
    resumed = RATIO.replace(DRAFT_STEP, _RESUMED)
    return (
        f"count(*), count(*) FILTER ({DRAFT_STEP}), {RATIO}, [{', '.join(reached)}]::UINTEGER[], "
        f"[{', '.join(matched)}]::UINTEGER[], count(*) FILTER ({_RESUMED}), {resumed}"
    )


def roll_up(connection: duckdb.DuckDBPyConnection, until: float) -> None:
    """Roll up whole cells of steps that ended before `until` (Unix seconds, record time), at every level.

    Infinity: all there is, the cell of the last step taken for whole, since nothing more will come.
    """
    if until == inf:
        (last,) = only_row(connection, "SELECT max(ts) FROM steps")
        until = 0.0 if last is None else FINEST.floor(last) + FINEST.seconds
    _finest(connection, until)
    for finer, level in pairwise(LEVELS):
        _coarser(connection, finer, level)
    roll_up_steps(connection, until)


def add_late(connection: duckdb.DuckDBPyConnection, relation: str, earliest: float) -> None:
    """Add the rows of `relation` (the table's columns and `STEP_FACTS`) that belong to cells already rolled up."""
    for level in LEVELS:
        done = rolled_up_to(connection, level)
        if earliest < done:
            source = f"(SELECT * FROM {relation} WHERE ts < {done!r})"
            _add_buckets(connection, source, level)
            if level is FINEST:
                _add_sequences(connection, source)


def rolled_up_to(connection: duckdb.DuckDBPyConnection, level: Level = FINEST) -> float:
    return progress.up_to(connection, f"rollup_{level.name}")


def _finest(connection: duckdb.DuckDBPyConnection, until: float) -> None:
    done, edge = rolled_up_to(connection), FINEST.floor(until)
    if edge <= done:
        return
    first, last = only_row(connection, "SELECT min(id), max(id) FROM steps WHERE ts >= ? AND ts < ?", [done, edge])
    if first is not None:
        # The bounds on `step` let the scan skip what was rolled up long ago.
        source = (
            f"(SELECT rows.*, {STEP_FACTS} FROM rows JOIN steps ON rows.step = steps.id "
            f"WHERE rows.step BETWEEN {first} AND {last} AND ts >= {done!r} AND ts < {edge!r})"
        )
        _add_buckets(connection, source, FINEST)
        _add_sequences(connection, source)
    progress.move(connection, f"rollup_{FINEST.name}", edge)


def _coarser(connection: duckdb.DuckDBPyConnection, finer: Level, level: Level) -> None:
    done, edge = rolled_up_to(connection, level), level.floor(rolled_up_to(connection, finer))
    if edge <= done:
        return
    cells = f"cell // {level.seconds} * {level.seconds}"
    inside = f"WHERE cell >= {done!r} AND cell < {edge!r} GROUP BY ALL"
    connection.execute(
        f"""INSERT INTO rollup_{level.name} SELECT {cells}, {JOINT_KEYS}, sum(count), sum(emitted), sum(proposed),
              sum(proposed_drafted) FROM rollup_{finer.name} {inside}"""
    )
    connection.execute(
        f"""INSERT INTO load_{level.name} SELECT {cells}, {LOAD_KEYS}, sum(count), sum(emitted), sum(duration_us),
              sum(emitted_batch), sum(emitted_context), sum(prefill) FROM load_{finer.name} {inside}"""
    )
    progress.move(connection, f"rollup_{level.name}", edge)


def _add_buckets(connection: duckdb.DuckDBPyConnection, source: str, level: Level) -> None:
    cell = _cell(level)
    connection.execute(
        f"INSERT INTO rollup_{level.name} SELECT {cell}, {JOINT_KEYS}, {JOINT_SUMS} FROM {source} GROUP BY ALL"
    )
    connection.execute(
        f"""INSERT INTO load_{level.name} SELECT {cell}, bucket, {LOAD_BANDS}, {LOAD_SUMS} FROM {source}
            WHERE cause <> {PREFILL} GROUP BY ALL"""
    )


def _add_sequences(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    (deepest,) = only_row(connection, f"SELECT coalesce(max(drafted), 0) FROM {source}")
    connection.execute(
        f"""INSERT INTO sequence_rollup_{FINEST.name}
            SELECT {_cell(FINEST)}, bucket, sequence, {sequence_sums(min(deepest, MAX_DEPTH))}
            FROM {source} GROUP BY ALL"""
    )


def _cell(level: Level) -> str:
    return f"(floor(ts / {level.seconds}) * {level.seconds})::BIGINT AS cell"
