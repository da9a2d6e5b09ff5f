"""Fills live windows from the store, so that a station that was restarted shows the last six hours at once: from the
finest rollups, and from raw rows what is not rolled up yet.

Each window gets its cells already added up to its own size, and the pool what is added up over buckets: DuckDB does in
milliseconds what took seconds row by row.
"""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import duckdb
import numpy as np

from engine.step_time.model import StepModel
from store.buckets import BucketName
from store.counts import TallyChange, pack
from store.gather import JOINT_COLUMNS, LOAD_COLUMNS, TOTAL_COLUMNS, joint_parts, load_parts, total_parts
from store.levels import CELL_SECONDS
from store.load import Runner, band_code
from store.recent import (
    LONGER,
    POOL,
    SERVED,
    finest_stretch,
    int_columns,
    load_cells,
    outages,
    recent_rate,
    ring_sums,
    with_longer_cells,
)
from store.rollup import JOINT_KEYS
from store.series import KEPT_SECONDS
from store.sql import only_row
from store.step_models import step_models
from store.stored import Stored
from store.window_spans import SPANS
from store.windows import LiveWindows

Nested = dict[tuple[int, int], dict[int, list[int]]]
"""By bucket (0 for the pool) and number of a window's cell, the sums of each key."""

_RUNNERS: Final = f"""(SELECT id, min(id) OVER (PARTITION BY engine, model_version) AS first_of_runner
  FROM buckets WHERE {SERVED})"""
_JOINT_KEYS: Final = JOINT_KEYS.removeprefix("bucket, ")


def preload(
    windows: LiveWindows,
    connection: duckdb.DuckDBPyConnection,
    now: float,
    models: Mapping[Runner, StepModel] | None = None,
) -> None:
    """Add the rows of the six hours before `now` (Unix seconds), the outages between them, and the step times.

    Args:
        models: step times to hold rows against, where the caller has them; None: those of all steps of the store.
    """
    names = dict(Stored(connection).buckets())
    with _nothing_is_garbage():
        for place, (seconds, size, _) in enumerate(SPANS):
            _window(windows, connection, names, place, _Cells(connection, now, seconds, size))
        _rings(windows, connection, names, now)
    windows.use_models(step_models(connection) if models is None else models)
    _load(windows, connection, now)
    windows.restore_rate(recent_rate(connection, now))


@contextlib.contextmanager
def _nothing_is_garbage() -> Iterator[None]:
    """Hundreds of thousands of small lists are made and all are kept: to look for garbage among them, again and again,
    would take longer than to make them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Cells:
    """What a window of `seconds` before `now` holds, in cells of `size` seconds: those that begin inside it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, now: float, seconds: float, size: int) -> None:
        self._connection = connection
        self._stretch = finest_stretch(connection, now - seconds - size, now)
        if size == LONGER.seconds:
            self._stretch = with_longer_cells(connection, self._stretch, now)
        self._oldest = math.ceil((now - seconds) / size)
        self.size = size

    def joint(self, bucket: str) -> Nested:
        return self._nested(bucket, _JOINT_KEYS, JOINT_COLUMNS, joint_parts(self._stretch), pack)

    def totals(self, bucket: str) -> Nested:
        return self._nested(bucket, "sequence", TOTAL_COLUMNS, total_parts(self._stretch), lambda sequence: sequence)

    def load(self, bucket: str) -> Nested:
        return self._nested(bucket, "batch_band, context_band", LOAD_COLUMNS, load_parts(self._stretch), band_code)

    def _nested(self, bucket: str, keys: str, sums: str, parts: list[str], code: Any) -> Nested:
        owner, cell, *rest = int_columns(
            self._connection,
            f"""SELECT {bucket} AS bucket, cell // {self.size} AS number, {keys},
                  {", ".join(f"sum({column})" for column in sums.split(", "))}
                FROM ({" UNION ALL ".join(parts)}) JOIN {_RUNNERS} ON bucket = id
                WHERE cell // {self.size} >= {self._oldest} GROUP BY ALL ORDER BY number""",
        )
        many = len(keys.split(", "))
        found: Nested = {}
        table = np.stack(rest[many:], axis=1).tolist()
        for place, key, values in zip(
            zip(owner.tolist(), cell.tolist(), strict=True), code(*rest[:many]).tolist(), table, strict=True
        ):
            found.setdefault(place, {})[key] = values
        return found


def _window(
    windows: LiveWindows,
    connection: duckdb.DuckDBPyConnection,
    names: dict[int, BucketName],
    place: int,
    cells: _Cells,
) -> None:
    """Fill window number `place` of every bucket and of the pool."""
    totals, loads = cells.totals("bucket"), cells.load("bucket")
    for (bucket, cell), joint in cells.joint("bucket").items():
        change = TallyChange(joint, totals.get((bucket, cell), {}))
        windows.restore_cell(names[bucket], place, cell * cells.size, change, loads.get((bucket, cell), {}))
    totals = cells.totals(str(POOL))
    for (_, cell), joint in cells.joint(str(POOL)).items():
        windows.restore_pool(place, cell * cells.size, TallyChange(joint, totals.get((POOL, cell), {})))
    for (bucket, cell), load in cells.load("first_of_runner").items():
        windows.restore_pool_load(names[bucket], place, cell * cells.size, load)


def _rings(
    windows: LiveWindows, connection: duckdb.DuckDBPyConnection, names: dict[int, BucketName], now: float
) -> None:
    """The sums of every bucket and of the pool in cells of 10 s."""
    for pooled in (False, True):
        for bucket, cells, sums in ring_sums(connection, now, pooled=pooled):
            seen = min(now, float(cells[-1] + 1) * CELL_SECONDS)
            windows.restore_series(None if pooled else names[bucket], cells, sums, seen)


def _load(windows: LiveWindows, connection: duckdb.DuckDBPyConnection, now: float) -> None:
    (first,) = only_row(
        connection,
        "SELECT min(ts - duration_ms / 1000) FROM steps WHERE ts > ? AND ts <= ?",
        [now - KEPT_SECONDS, now],
    )
    if first is not None:
        windows.recorded_since(first)
    for cell, steps, running in load_cells(connection, now):
        windows.add_load(cell, steps, running)
    for engine, since, until in outages(connection, now):
        windows.outage(engine, since, until)
