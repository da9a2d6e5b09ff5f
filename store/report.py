"""The report: figures per bucket over a stretch of record time, from the rollups and rows of a store or of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb
import numpy as np

from store import executed, progress
from store.blocks import block_seconds, level_of
from store.buckets import bucket_order
from store.counts import Bools
from store.figures import Figures, Report, Window
from store.gather import Counts, stretch_of
from store.levels import LEVELS
from store.metrics import figures
from store.observed import Observed, observed, observed_buckets, observed_total
from store.recorded import Interval, recorded_seconds
from store.report_notes import report_notes
from store.segments import Stretch
from store.sql import only_row
from store.step_models import ReportedSpeedup

KEYS: Final = ("workload", "context", "temperature", "model_version", "engine")
DEFAULT_KEYS: Final = KEYS[:4]


class ReportError(ValueError):
    """A question that has no answer: names the argument and what it may be."""


def report(
    connection: duckdb.DuckDBPyConnection,
    *,
    source: str,
    by: Sequence[str] | None = None,
    window: float | None = None,
    at: float | None = None,
) -> Report:
    """Figures per bucket.

    Args:
        source: what the connection is on, as the report names it.
        by: keys to tell buckets apart by, of `KEYS`; the rest is pooled. None: all four keys of a bucket.
        window: seconds of record time back from `at`; None: everything.
        at: Unix seconds at which the report ends; None: the last record.

    Raises:
        ReportError: an unknown key, or a window that is not positive.
    """
    keys = _checked(by)
    if window is not None and not window > 0:
        raise ReportError(f"window: must be more than 0 seconds, not {window}")
    bounds = _bounds(window, at, connection)
    stretch = stretch_of(connection, *bounds)
    start, end = stretch.start, stretch.end
    span = _recorded_window(connection, stretch)
    seconds = _seconds(connection, stretch, span) if span else None
    block = block_seconds(span.end - span.start if span else 0.0)
    counts = Counts(connection, stretch, stretch_of(connection, *bounds, level_of(block)), block)
    speedup = ReportedSpeedup(connection, counts)

    def pooled(members: Bools, **name: str) -> Figures:
        return figures(
            counts.joint(members),
            counts.sequences(members),
            speedup=speedup.of(members),
            seconds=seconds,
            window=span,
            **name,
        )

    found = [
        pooled(members, **dict(zip(keys, name, strict=True)))
        for name, members in grouped(connection, keys)
        if counts.any(members)
    ]
    seen = observed(connection, start, end)
    everything = np.ones(counts.bucket_limit, dtype=bool)
    quarantined, gaps, lost = _losses(connection, start, end)
    transitions, mismatches = executed.judge(connection, start, end)
    return Report(
        source=source,
        window=_joined(span, seen),
        buckets=[*found, *observed_buckets(seen, keys)],
        total=pooled(everything) if counts.any(everything) else observed_total(seen),
        quarantined=quarantined,
        gaps=gaps,
        frames_lost=lost,
        transitions=transitions,
        mismatches=mismatches,
        notes=[
            *report_notes(connection, start, end),
            *(_COUNTERS_APART if found and seen else []),
        ],
    )


def recorded_span(connection: duckdb.DuckDBPyConnection) -> Window | None:
    """All of the recorded time there is; None where nothing ran."""
    everything = stretch_of(connection, float("-inf"), float("inf"))
    seen = observed(connection, everything.start, everything.end)
    return _joined(_recorded_window(connection, everything), seen)


def recorded_time(
    connection: duckdb.DuckDBPyConnection, start: float, end: float
) -> tuple[Window | None, float | None]:
    """The recorded window in (start, end], and its wall seconds without outages and gaps; None where no step is."""
    stretch = stretch_of(connection, start, end)
    span = _recorded_window(connection, stretch)
    return span, _seconds(connection, stretch, span) if span else None


def _checked(by: Sequence[str] | None) -> tuple[str, ...]:
    keys = DEFAULT_KEYS if by is None else tuple(dict.fromkeys(by))
    for key in keys:
        if key not in KEYS:
            raise ReportError(f"by: {key!r} is no key of a bucket; {', '.join(KEYS)} are")
    return keys


_COUNTERS_APART: Final = ["engines of which only counters are known are not in the total"]


def _joined(span: Window | None, seen: Sequence[Observed]) -> Window | None:
    ends = [moment for one in seen for stretch in one.stretches for moment in stretch]
    if span is not None:
        ends += [span.start, span.end]
    return Window(min(ends), max(ends)) if ends else None


def _bounds(window: float | None, at: float | None, connection: duckdb.DuckDBPyConnection) -> tuple[float, float]:
    end = float("inf") if at is None else at
    if window is None:
        return float("-inf"), end
    latest = at if at is not None else _last_record(connection)
    return (latest - window if latest is not None else float("-inf")), end


def _last_record(connection: duckdb.DuckDBPyConnection) -> float | None:
    """When the last step or observation ended; where none is kept any more, the end of the last cell."""
    (last,) = only_row(connection, "SELECT max(ts) FROM (SELECT ts FROM steps UNION ALL SELECT ts FROM observations)")
    for level in LEVELS:
        if last is None:
            (last,) = only_row(connection, f"SELECT max(cell) + {level.seconds} FROM rollup_{level.name}")
    return None if last is None else float(last)


def _recorded_window(connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> Window | None:
    """The first step's start to the last step's end; where steps are no longer kept, by the cells of the rollups."""
    first, last = only_row(
        connection,
        "SELECT min(ts) - arg_min(duration_ms, ts) / 1000, max(ts) FROM steps WHERE ts > ? AND ts <= ?",
        [stretch.start, stretch.end],
    )
    if max(stretch.start, 0.0) < progress.up_to(connection, progress.RAW_FROM):
        for level, begin, end in stretch.segments:
            earliest, latest = only_row(
                connection,
                f"SELECT min(cell), max(cell) + {level.seconds} FROM rollup_{level.name} WHERE cell >= ? AND cell < ?",
                [begin, end],
            )
            if earliest is not None:
                first = earliest if first is None else min(first, earliest)
                last = latest if last is None else max(last, min(latest, round(stretch.end, 6)))
    return None if last is None else Window(max(float(first), stretch.start), float(last))


def _seconds(connection: duckdb.DuckDBPyConnection, stretch: Stretch, span: Window) -> float:
    """Wall seconds of the window without outages and gaps. A gap that says no start lies between its neighbours."""
    outages: dict[str, list[Interval]] = {}
    for engine, since, until in connection.execute(
        """WITH s AS (SELECT engine, steps.ts, duration_ms FROM steps JOIN engines ON engine_run = engines.id)
           SELECT engine, coalesce(since, (SELECT max(s.ts) FROM s WHERE s.engine = g.engine AND s.ts <= g.ts)),
             CASE WHEN since IS NOT NULL THEN ts ELSE coalesce(
               (SELECT min(s.ts - s.duration_ms / 1000) FROM s WHERE s.engine = g.engine AND s.ts > g.ts), ts) END
           FROM gaps g"""
    ).fetchall():
        if since is not None:
            outages.setdefault(engine, []).append((since, until))
    return recorded_seconds(span.start, span.end, outages, _stepping(connection, stretch))


def _stepping(connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> list[str]:
    """Engines that made steps in the stretch: the others are not missed while these are dark."""
    cells = " UNION ".join(
        f"SELECT bucket FROM rollup_{level.name} WHERE cell >= {begin!r} AND cell < {end!r}"
        for level, begin, end in stretch.segments
    )
    rolled = f"UNION SELECT engine FROM buckets WHERE id IN ({cells})" if cells else ""
    found = connection.execute(
        f"""SELECT engine FROM engines WHERE id IN (SELECT engine_run FROM steps WHERE ts > ? AND ts <= ?) {rolled}""",
        [stretch.start, stretch.end],
    ).fetchall()
    return sorted({engine for (engine,) in found})


def grouped(
    connection: duckdb.DuckDBPyConnection, keys: tuple[str, ...]
) -> list[tuple[tuple[str, ...], np.ndarray[Any, Any]]]:
    """Each combination of `keys`, in order, and which buckets (a mask by number) belong to it."""
    rows = connection.execute(f"SELECT id, {', '.join(KEYS)} FROM buckets").fetchall()
    size = max((row[0] for row in rows), default=-1) + 1
    groups: dict[tuple[str, ...], np.ndarray[Any, Any]] = {}
    for number, *values in rows:
        name = tuple(values[KEYS.index(key)] for key in keys)
        groups.setdefault(name, np.zeros(size, dtype=bool))[number] = True
    return sorted(groups.items(), key=lambda item: _order(dict(zip(keys, item[0], strict=True))))


def _order(name: dict[str, str]) -> tuple[object, ...]:
    bucket = (name.get(key) for key in DEFAULT_KEYS)
    return *bucket_order(*bucket), name.get("engine", "")


def _losses(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> tuple[int, int, int]:
    """Quarantined rows, gaps, frames lost. Of rows that are gone only the hour is known."""
    bounds = [start, end]
    (quarantined,) = only_row(
        connection,
        """SELECT (SELECT count(*) FROM quarantine WHERE ts > $1 AND ts <= $2)
             + (SELECT coalesce(sum(count), 0) FROM quarantine_1h WHERE cell >= floor($1 / 3600) * 3600 AND cell < $2)
        """,
        bounds,
    )
    gaps, lost = only_row(
        connection, "SELECT count(*), coalesce(sum(frames_lost), 0) FROM gaps WHERE ts > ? AND ts <= ?", bounds
    )
    return int(quarantined), int(gaps), int(lost)
