"""Of each point of a bucket's time series: how sure its acceptance is, and what speedup was realised in it.

Read from the store, so that whoever shows a live picture holds up nobody, and a replay says the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import duckdb
import numpy as np
from msgspec.structs import replace

from engine.intervals import CONFIDENCE, Interval, interval_of_sums
from engine.speedup import FEW_CELLS
from engine.step_time.columns import Floats
from engine.step_time.load import LoadSums, account
from engine.step_time.model import LARGEST_ERROR, MEASURED_SHARE, StepModel
from store.counts import RATIO_UNIT, Ints
from store.figures import BucketKey, SeriesPoint
from store.gather import LOAD_COLUMNS, load_parts, total_parts
from store.judge.moments import OVER, UNDER, N, moments
from store.judge.spans import speedup_span
from store.levels import CELL_SECONDS
from store.load import SUMS, Runner
from store.recent import finest_stretch, int_columns
from store.segments import Stretch

_BY_SEQUENCE: Final = """SELECT place, count(*), sum(y), sum(x), sum(y * y), sum(x * y), sum(x * x)
FROM (SELECT cell // {seconds} AS place, sequence, sum(draft_steps)::DOUBLE AS y, sum(ratio)::DOUBLE / {unit} AS x
      FROM ({parts}) WHERE bucket IN ({members}) GROUP BY ALL HAVING y > 0) GROUP BY place"""


class Realised(NamedTuple):
    """A realised speedup; the interval is missing where too few blocks of 10 s tell of their spread."""

    value: float
    bounds: Interval | None


def members_of(connection: duckdb.DuckDBPyConnection, key: BucketKey) -> dict[int, Runner]:
    """Numbers of the buckets of a key, one for each engine, and whose step times they are held against."""
    rows = connection.execute(
        """SELECT id, engine, model_version FROM buckets
           WHERE workload = ? AND context = ? AND temperature = ? AND model_version = ? ORDER BY id""",
        [key.workload, key.context, key.temperature, key.model_version],
    ).fetchall()
    return {number: Runner(engine, version) for number, engine, version in rows}


def detailed(
    connection: duckdb.DuckDBPyConnection,
    key: BucketKey,
    points: Sequence[SeriesPoint],
    seconds: int,
    models: Mapping[Runner, StepModel],
    now: float,
) -> list[SeriesPoint]:
    """`points` with the number of sequences, the interval of α (clustered by sequence inside the point) and the
    realised speedup (clustered by blocks of 10 s, with the calibration error of the whole stretch).

    Args:
        seconds: length of a point's cell, a multiple of 10.
        now: nothing later counts, Unix seconds.
    """
    members = members_of(connection, key)
    if not points or not members:
        return list(points)
    start = math.nextafter(points[0].ts - seconds, -math.inf)  # a step that ended at the edge is in the cell
    stretch = finest_stretch(connection, start, now)
    sure = _acceptance(connection, stretch, members, seconds)
    fast = _speedups(_loads(connection, stretch, members), models, seconds // CELL_SECONDS)
    return [_with(point, sure.get(int(point.ts) // seconds - 1), fast.get(int(point.ts) // seconds - 1))
            for point in points]  # fmt: skip


def _with(point: SeriesPoint, sure: tuple[int, Interval | None] | None, fast: Realised | None) -> SeriesPoint:
    sequences, bounds = sure or (0 if point.alpha is None else None, None)  # those may not be stored yet
    low, high = bounds or (None, None)
    slowest, fastest = (fast and fast.bounds) or (None, None)
    return replace(
        point, sequences=sequences, alpha_low=low, alpha_high=high,
        speedup=None if fast is None else fast.value, speedup_low=slowest, speedup_high=fastest,
    )  # fmt: skip


def _acceptance(
    connection: duckdb.DuckDBPyConnection, stretch: Stretch, members: Mapping[int, Runner], seconds: int
) -> dict[int, tuple[int, Interval | None]]:
    """By number of the point's cell: sequences that drafted in it, and the interval of its α."""
    query = _BY_SEQUENCE.format(
        seconds=seconds, unit=RATIO_UNIT, parts=" UNION ALL ".join(total_parts(stretch)), members=_listed(members)
    )
    return {place: (n, interval_of_sums(n, *sums)) for place, n, *sums in connection.execute(query).fetchall()}


def _loads(
    connection: duckdb.DuckDBPyConnection, stretch: Stretch, members: Mapping[int, Runner]
) -> dict[Runner, LoadSums]:
    """What the decode rows lived through, by cells of 10 s."""
    query = f"""SELECT bucket, cell // {CELL_SECONDS}, batch_band, context_band, {LOAD_COLUMNS}
        FROM ({" UNION ALL ".join(load_parts(stretch))}) WHERE bucket IN ({_listed(members)})"""
    bucket, *columns = int_columns(connection, query)
    found = {}
    for runner in dict.fromkeys(members.values()):
        mine = np.isin(bucket, [number for number, other in members.items() if other == runner])
        found[runner] = load_of([column[mine] for column in columns])
    return found


def load_of(columns: Sequence[Ints]) -> LoadSums:
    """From the columns cell, batch band, context band and those of `store.gather.LOAD_COLUMNS`."""
    cell, batch, context, *sums = columns
    named = dict(zip(SUMS, sums, strict=True))
    duration = named.pop("duration_us") / 1000
    return LoadSums.of(cell=cell, batch_band=batch, context_band=context, duration_ms=duration, **named)


def _speedups(loads: Mapping[Runner, LoadSums], models: Mapping[Runner, StepModel], size: int) -> dict[int, Realised]:
    """By number of the point's cell of `size` blocks: where most of its time was at loads with a known vanilla time."""
    blocks: list[tuple[Ints, Floats, Floats]] = []
    known: dict[int, float] = {}
    spent: dict[int, float] = {}
    error = 0.0
    for runner, sums in loads.items():
        model = models.get(runner)
        found = account(sums, model)
        blocks.append((found.cell, found.gained_ms, found.taken_ms))
        error = max(error, found.error_ms / float(found.gained_ms.sum()) if len(found.cell) else 0.0)
        _add(spent, sums.cell // size, sums.duration_ms)
        if model is not None and model.error is not None and model.error <= LARGEST_ERROR:
            trusted = model.measured(sums.batch_band, sums.context_band)
            _add(known, sums.cell[trusted] // size, sums.duration_ms[trusted])
    cell, gained, taken = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    order = np.argsort(cell, kind="stable")
    groups, found_moments = moments(taken[order, None], gained[order, None], cell[order] // size)
    made = {}
    for place, one in zip(groups.tolist(), found_moments[:, 0], strict=True):
        if one[UNDER] > 0 and known.get(place, 0.0) >= MEASURED_SHARE * spent[place]:
            span = speedup_span(one, CONFIDENCE, error) if one[N] >= FEW_CELLS else None
            bounds = None if span is None else Interval(span.low, span.high)
            made[place] = Realised(float(one[OVER] / one[UNDER]), bounds)
    return made


def _add(into: dict[int, float], places: Ints, amounts: Floats) -> None:
    distinct, place = np.unique(places, return_inverse=True)
    for where, amount in zip(distinct.tolist(), np.bincount(place, amounts).tolist(), strict=True):
        into[where] = into.get(where, 0.0) + amount


def _listed(members: Mapping[int, Runner]) -> str:
    return ", ".join(map(str, members))
