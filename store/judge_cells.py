"""Closed 10-s cells of a store as the judge takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

from engine.step_time.load import LoadSums, account
from engine.step_time.model import StepModel
from store.counts import PREFILL, RATIO_UNIT, Ints
from store.judge.inputs import EngineLoad, LoadCells, SequenceCells
from store.levels import CELL_SECONDS
from store.load import Runner
from store.sequence_totals import summed

_CELL: Final = f"(floor(s.ts / {CELL_SECONDS}) * {CELL_SECONDS})::BIGINT AS cell"


ModelOf = Callable[[Runner, float], StepModel | None]
"""The model to judge an engine's cell by that begins at a moment; asked in the order of time."""


class JudgedCell(NamedTuple):
    ts: float
    sequences: SequenceCells | None
    load: LoadCells


def judged_cells(
    connection: duckdb.DuckDBPyConnection, start: float, stop: float, model_of: ModelOf
) -> Iterator[JudgedCell]:
    """The cells that begin in [start, stop), multiples of 10, and hold anything, in order."""
    sequences = _sequences(connection, start, stop)
    loads = _loads(connection, start, stop, model_of)
    for cell in sorted(sequences.keys() | loads.keys()):
        yield JudgedCell(float(cell), sequences.get(cell), loads.get(cell) or _nothing(float(cell)))


def _sequences(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> dict[int, SequenceCells]:
    """Rows of one sequence and bucket are added up: late ones stand apart in the rollup."""
    inside = f"cell >= {start!r} AND cell < {stop!r}"
    (depth,) = connection.execute(
        f"SELECT coalesce(max(len(reached)), 0) FROM sequence_rollup_10s WHERE {inside}"
    ).fetchall()[0]
    table: Any = connection.sql(
        f"""SELECT cell, bucket, sequence, {summed(depth)} FROM sequence_rollup_10s WHERE {inside}
            GROUP BY cell, bucket, sequence ORDER BY cell, bucket, sequence"""
    ).to_arrow_table()
    cell, bucket, sequence, rows, _, _, reached, matched, resumed, ratio = table.columns
    cells = _whole(cell)
    columns = [_whole(column) for column in (bucket, sequence, rows, resumed, ratio)]
    deep = [_lists(column, depth) for column in (reached, matched)]
    found = {}
    for ts, place in _runs(cells):
        buckets, sequences, decode, steps, ratios = (column[place] for column in columns)
        found[ts] = SequenceCells(
            float(ts), buckets, sequences, decode, deep[0][place], deep[1][place], steps, ratios / RATIO_UNIT
        )
    return found


def _loads(connection: duckdb.DuckDBPyConnection, start: float, stop: float, model_of: ModelOf) -> dict[int, LoadCells]:
    runners = {
        bucket: Runner(engine, version)
        for bucket, engine, version in connection.execute("SELECT id, engine, model_version FROM buckets").fetchall()
    }
    inside = f"cell >= {start!r} AND cell < {stop!r}"
    load = _fetched(
        connection,
        f"""SELECT cell, bucket, batch_band, context_band, sum(count), sum(emitted), sum(duration_us),
              sum(emitted_batch), sum(emitted_context), sum(prefill) FROM load_10s WHERE {inside} GROUP BY ALL
            ORDER BY cell, bucket, batch_band, context_band""",
    )
    drafts = _fetched(
        connection,
        f"""SELECT cell, bucket, sum(count * drafted), sum(count * accepted), sum(count) FROM rollup_10s
            WHERE {inside} AND cause <> {PREFILL} GROUP BY ALL ORDER BY cell, bucket""",
    )
    engines = _engines(connection, start, stop)
    found = {}
    ends = dict(_runs(load[0]))
    for ts, place in _runs(drafts[0]):
        buckets = drafts[1][place]
        gained, taken = np.full(len(buckets), np.nan), np.zeros(len(buckets))
        errors: dict[str, float] = {}
        mine = [column[ends[ts]] for column in load] if ts in ends else [column[:0] for column in load]
        for number, bucket in enumerate(buckets.tolist()):
            runner = runners[bucket]
            one = account(_sums([column[mine[1] == bucket] for column in mine]), model_of(runner, float(ts)))
            taken[number] = one.total_ms
            if one.measured_ms >= 0.8 * one.total_ms > 0:
                gained[number] = float(one.gained_ms.sum())
                error = float(one.error_ms / max(gained[number], 1e-9))
                errors[runner.engine] = max(errors.get(runner.engine, 0.0), error)
        found[ts] = LoadCells(
            float(ts), buckets, gained, taken, drafts[2][place], drafts[3][place], drafts[4][place],
            tuple(
                EngineLoad(engine, running, k, errors.get(engine, 0.0)) for engine, running, k in engines.get(ts, ())
            ),
        )  # fmt: skip
    return found


def _engines(
    connection: duckdb.DuckDBPyConnection, start: float, stop: float
) -> dict[int, list[tuple[str, float, float]]]:
    """Of each cell: engine, mean running sequences, mean executed K."""
    found: dict[int, list[tuple[str, float, float]]] = {}
    for cell, engine, running, k in connection.execute(
        f"""SELECT {_CELL}, engine, avg(running), avg(k_draft) FROM steps s JOIN engines e ON engine_run = e.id
            WHERE s.ts >= ? AND s.ts < ? GROUP BY ALL ORDER BY engine""",
        [start, stop],
    ).fetchall():
        found.setdefault(cell, []).append((engine, running, k))
    return found


def _sums(columns: list[Ints]) -> LoadSums:
    cell, _, batch, context, rows, emitted, duration, emitted_batch, emitted_context, prefill = columns
    return LoadSums.of(
        cell=cell, batch_band=batch, context_band=context, rows=rows, emitted=emitted, duration_ms=duration / 1000,
        emitted_batch=emitted_batch, emitted_context=emitted_context, prefill=prefill,
    )  # fmt: skip


def _nothing(ts: float) -> LoadCells:
    none = np.zeros(0, dtype=np.int64)
    return LoadCells(ts, none, none.astype(float), none.astype(float), none, none, none, ())


def _runs(ordered: Ints) -> Iterator[tuple[int, slice]]:
    """Each value of an ascending column, and where it stands."""
    edges = np.flatnonzero(np.diff(ordered)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(ordered)], strict=True):
        if first < last:
            yield int(ordered[first]), slice(first, last)


def _fetched(connection: duckdb.DuckDBPyConnection, query: str) -> list[Ints]:
    return [column.astype(np.int64) for column in connection.execute(query).fetchnumpy().values()]


def _whole(column: Any) -> Ints:
    return np.asarray(column.to_numpy()).astype(np.int64)


def _lists(column: Any, depth: int) -> npt.NDArray[np.int64]:
    """Lists of equal length as a matrix, rows × depth."""
    flat = column.combine_chunks().flatten().to_numpy() if depth else np.zeros(0)
    return np.asarray(flat).astype(np.int64).reshape(len(column), depth)
