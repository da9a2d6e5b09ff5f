"""Reads a store back as the records of a trace, in the order of their time: what `export` writes as JSONL."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import duckdb
import msgspec

from engine.records import (
    CAUSES,
    LIMITS,
    ControlRecord,
    EngineRecord,
    FinishRecord,
    GapRecord,
    Record,
    Row,
    SequenceRecord,
    StateRecord,
    StepRecord,
)
from store.buckets import UNATTRIBUTED, UNTAGGED
from store.record_tables import PROBES
from store.sql import only_row

Timed = tuple[float, int, Record]
"""Time, a rank that orders records of one time, the record."""

_RANKS: Final = {kind: rank for rank, kind in enumerate(
    (EngineRecord, StateRecord, ControlRecord, SequenceRecord, StepRecord, FinishRecord, GapRecord)
)}  # fmt: skip

_BATCH: Final = 50_000
_LONGEST_OPEN: Final = 86_400.0
"""A sequence that arrived so long ago and was never seen to finish was lost."""
_NO_STEP: Final = 2**62
"""No step has this number or a higher one."""


def stored_records(
    cursor: duckdb.DuckDBPyConnection, since: float | None = None, state: StateRecord | None = None
) -> Iterator[Record]:
    """All records. Workloads are written as they were counted, so that reading them again gives the same buckets.

    Args:
        since: Unix seconds; only what is newer. What newer records can't be read without comes along: every engine,
            the sequences that newer rows and finishes name, and the controls that were still in force.
        state: one more record.
    """
    after = -math.inf if since is None else since
    (first,) = only_row(cursor, "SELECT coalesce(min(id), ?) FROM steps WHERE ts > ?", [_NO_STEP, after])
    few = [
        *_engines(cursor), *_sequences(cursor, since, first), *_finishes(cursor, after), *_controls(cursor, after),
        *_gaps(cursor, after), *_states(cursor, after), *([] if state is None else [_timed(state)]),
    ]  # fmt: skip
    few.sort(key=itemgetter(0, 1))
    for _, _, record in heapq.merge(few, _steps(cursor, after, first), key=itemgetter(0, 1)):
        yield record


def _timed(record: Record) -> Timed:
    return record.ts, _RANKS[type(record)], record


def _engines(cursor: duckdb.DuckDBPyConnection) -> Iterator[Timed]:
    """Each run's record, before anything of the run."""
    query = """SELECT record, least(ts, (SELECT min(ts) FROM sequences s WHERE s.engine_run = e.id),
      (SELECT min(ts) FROM steps s WHERE s.engine_run = e.id)) FROM engines e ORDER BY id"""
    for text, first in cursor.execute(query).fetchall():
        record = msgspec.json.decode(text, type=EngineRecord)
        yield first, _RANKS[EngineRecord], record


_ENGINES: Final = "(SELECT *, id = min(id) OVER (PARTITION BY engine) AS is_first FROM engines) e"
_NAME: Final = "CASE WHEN is_first OR NOT regexp_full_match(name, '-?[0-9]+') THEN name ELSE name || '@' || e.id END"
"""A sequence's name in the trace. An engine counts its handles from 1 again after a restart: a reader who pays no heed
to the engine records between must not take two sequences for one."""


_NAMED_AFTER: Final = """AND (s.ts > $since OR s.id IN (SELECT sequence FROM rows WHERE step >= $first)
  OR s.id IN (SELECT sequence FROM finishes WHERE ts > $since))"""


def _sequences(cursor: duckdb.DuckDBPyConnection, since: float | None, first: int) -> Iterator[Timed]:
    """Arrivals. `first`: the first step that is newer than `since`."""
    query = f"""SELECT engine, {_NAME}, s.ts, workload, temperature, prompt_tokens, disable_speculation, lane,
      hint_error, request FROM sequences s JOIN {_ENGINES} ON engine_run = e.id
      WHERE workload <> $nobody {"" if since is None else _NAMED_AFTER} ORDER BY s.id"""
    values: dict[str, Any] = {"nobody": UNATTRIBUTED}
    if since is not None:
        values |= {"since": since, "first": first}
    for engine, name, ts, workload, *rest in cursor.execute(query, values).fetchall():
        yield _timed(SequenceRecord(engine, name, ts, None if workload == UNTAGGED else workload, *rest))


def open_sequences(cursor: duckdb.DuckDBPyConnection, ts: float) -> dict[int, tuple[str, str]]:
    """Sequences that arrived before a moment and were not finished then: number → engine and name in a trace."""
    query = f"""SELECT s.id, engine, {_NAME} FROM sequences s JOIN {_ENGINES} ON engine_run = e.id
      WHERE workload <> ? AND s.ts < ? AND s.ts > ?
        AND s.id NOT IN (SELECT sequence FROM finishes WHERE sequence IS NOT NULL AND ts < ?)"""
    found = cursor.execute(query, [UNATTRIBUTED, ts, ts - _LONGEST_OPEN, ts]).fetchall()
    return {number: (engine, name) for number, engine, name in found}


def _finishes(cursor: duckdb.DuckDBPyConnection, after: float) -> Iterator[Timed]:
    query = f"""SELECT engine, {_NAME}, f.ts, reason, output_tokens FROM finishes f JOIN {_ENGINES} ON engine_run = e.id
      WHERE f.ts > ?"""
    for values in cursor.execute(query, [after]).fetchall():
        yield _timed(FinishRecord(*values))


def _controls(cursor: duckdb.DuckDBPyConnection, after: float) -> Iterator[Timed]:
    """Newer ones, and of those before the last of each kind: without it, what it set would look like a mismatch."""
    query = "SELECT ts, actor, action, workload, before, after, policy, why, numbers FROM controls ORDER BY ts, rowid"
    in_force: dict[tuple[str, str | None], ControlRecord] = {}
    newer: list[ControlRecord] = []
    for ts, actor, action, workload, replaced, made, policy, why, numbers in cursor.execute(query).fetchall():
        before, by = _decoded(replaced), _decoded(numbers)
        control = ControlRecord(ts, actor, action, workload, before, _decoded(made), policy, why, by)
        if ts > after:
            newer.append(control)
        else:
            in_force[action, workload] = control
    return map(_timed, (*in_force.values(), *newer))


def _gaps(cursor: duckdb.DuckDBPyConnection, after: float) -> Iterator[Timed]:
    query = "SELECT engine, ts, frames_lost, since, reason FROM gaps WHERE ts > ?"
    for values in cursor.execute(query, [after]).fetchall():
        yield _timed(GapRecord(*values))


def _states(cursor: duckdb.DuckDBPyConnection, after: float) -> Iterator[Timed]:
    for ts, state in cursor.execute("SELECT ts, state FROM states WHERE ts > ?", [after]).fetchall():
        yield _timed(StateRecord(ts, msgspec.json.decode(state)))


_STEP_QUERY: Final = f"""WITH facts AS (
  SELECT step, name, k_asked, limit_term, proposed, drafted, invalid, accepted, emitted, context, cause,
    0 AS late, sequence AS place, rows.rowid AS came
  FROM rows JOIN sequences q ON sequence = q.id WHERE step >= $first
  UNION ALL
  SELECT step, name, k_asked, limit_term, proposed, drafted, invalid, accepted, emitted, context, cause, 1, 0, rowid
  FROM quarantine WHERE step >= $first)
SELECT s.id, engine, frame, number, s.ts, duration_ms, k_verify, k_draft, running, waiting, prefill_tokens, probe,
  policy, limit_draft, {_NAME}, k_asked, limit_term, proposed, drafted, invalid, accepted, emitted, context, facts.cause
FROM steps s JOIN {_ENGINES} ON engine_run = e.id LEFT JOIN facts ON facts.step = s.id
WHERE s.ts > $after
ORDER BY s.ts, s.id, late, place, came"""
_STEP_COLUMNS: Final = 14


def _steps(cursor: duckdb.DuckDBPyConnection, after: float, first: int) -> Iterator[Timed]:
    """Steps with their rows, impossible ones included: they were part of what came."""
    for _, group in groupby(_fetched(cursor, _STEP_QUERY, {"after": after, "first": first}), key=itemgetter(0)):
        lines = list(group)
        _, engine, frame, number, ts, duration_ms, k_verify, k_draft, running, waiting, prefill, probe, policy, term = (
            lines[0][:_STEP_COLUMNS]
        )
        yield _timed(
            StepRecord(
                engine, frame, number, ts, duration_ms, k_verify, k_draft, running, waiting,
                [_row(line[_STEP_COLUMNS:]) for line in lines if line[_STEP_COLUMNS] is not None],
                prefill, None if probe is None else PROBES[probe], policy, LIMITS[term],
            )
        )  # fmt: skip


def _row(values: tuple[Any, ...]) -> Row:
    seq, k_asked, term, proposed, drafted, invalid, accepted, emitted, context, cause = values
    return Row(
        seq, k_asked, _named(LIMITS, term, "max"), proposed, drafted, invalid, accepted, emitted, context,
        _named(CAUSES, cause, "unknown"),
    )  # fmt: skip


def _named(names: tuple[Any, ...], code: int, otherwise: str) -> Any:
    """A quarantined row may hold a code that names nothing."""
    return names[code] if 0 <= code < len(names) else otherwise


def _fetched(cursor: duckdb.DuckDBPyConnection, query: str, values: dict[str, float]) -> Iterator[tuple[Any, ...]]:
    cursor.execute(query, values)
    while batch := cursor.fetchmany(_BATCH):
        yield from batch


def _decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
