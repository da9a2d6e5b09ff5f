"""The report: figures per bucket over a stretch of record time, from the raw rows of a store or of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb
import numpy as np

from store import executed
from store.buckets import bucket_order
from store.counts import Ints, Joint, SequenceTotals, sum_by_sequence
from store.figures import Figures, Report, Window
from store.metrics import figures
from store.recorded import Interval, recorded_seconds
from store.rollup import DRAFT_STEP, RATIO
from store.sql import only_row

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
    start, end = _bounds(window, at, connection)
    span = _recorded_window(connection, start, end)
    seconds = _seconds(connection, span) if span else None
    counts = _Counts(connection, start, end)
    found = [
        counts.figures(members, seconds, span, **dict(zip(keys, name, strict=True)))
        for name, members in _grouped(connection, keys)
        if counts.any(members)
    ]
    everything = np.ones(counts.bucket_limit, dtype=bool)
    quarantined, gaps, lost = _losses(connection, start, end)
    transitions, mismatches = executed.judge(connection, start, end)
    return Report(
        source=source,
        window=span,
        buckets=found,
        total=counts.figures(everything, seconds, span) if counts.any(everything) else None,
        quarantined=quarantined,
        gaps=gaps,
        frames_lost=lost,
        transitions=transitions,
        mismatches=mismatches,
        notes=_notes(connection, start, end),
    )


class _Counts:
    """The joint histogram and the totals per sequence of every bucket, in steps that ended in (start, end]."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, start: float, end: float) -> None:
        inside = "rows SEMI JOIN (SELECT id FROM steps WHERE ts > ? AND ts <= ?) s ON rows.step = s.id"
        joint = _columns(
            connection,
            f"""SELECT bucket, k_asked, limit_term, drafted, accepted, cause, count(*), sum(emitted),
                  coalesce(sum(proposed), 0), coalesce(sum(drafted) FILTER (proposed IS NOT NULL), 0)
                FROM {inside} GROUP BY ALL""",
            [start, end],
        )
        self._bucket, self._joint = joint[0], Joint(*joint[1:])
        totals = _columns(
            connection,
            f"""SELECT bucket, sequence, count(*), count(*) FILTER ({DRAFT_STEP}), {RATIO}
                FROM {inside} GROUP BY bucket, sequence""",
            [start, end],
        )
        self._of_sequence, self._totals = totals[0], totals[1:]
        self.bucket_limit = int(self._bucket.max()) + 1 if len(self._bucket) else 0

    def any(self, members: np.ndarray[Any, Any]) -> bool:
        """Whether there are rows in the buckets that `members` (indexed by bucket) marks."""
        return bool(members[: self.bucket_limit][self._bucket].any())

    def figures(self, members: np.ndarray[Any, Any], seconds: float | None, span: Window | None, **key: str) -> Figures:
        members = members[: self.bucket_limit]
        inside = members[self._of_sequence]
        totals: SequenceTotals = sum_by_sequence(*(column[inside] for column in self._totals))
        return figures(self._joint.take(members[self._bucket]), totals, seconds=seconds, window=span, **key)


def _checked(by: Sequence[str] | None) -> tuple[str, ...]:
    keys = DEFAULT_KEYS if by is None else tuple(dict.fromkeys(by))
    for key in keys:
        if key not in KEYS:
            raise ReportError(f"by: {key!r} is no key of a bucket; {', '.join(KEYS)} are")
    return keys


def _bounds(window: float | None, at: float | None, connection: duckdb.DuckDBPyConnection) -> tuple[float, float]:
    end = float("inf") if at is None else at
    if window is None:
        return float("-inf"), end
    (last,) = only_row(connection, "SELECT max(ts) FROM steps WHERE ts <= ?", [end])
    latest = at if at is not None else last
    return (latest - window if latest is not None else float("-inf")), end


def _recorded_window(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> Window | None:
    """The first step's start to the last step's end."""
    first, last = only_row(
        connection,
        "SELECT min(ts) - arg_min(duration_ms, ts) / 1000, max(ts) FROM steps WHERE ts > ? AND ts <= ?",
        [start, end],
    )
    return None if last is None else Window(max(float(first), start), float(last))


def _seconds(connection: duckdb.DuckDBPyConnection, span: Window) -> float:
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
    engines = [row[0] for row in connection.execute("SELECT DISTINCT engine FROM engines").fetchall()]
    return recorded_seconds(span.start, span.end, outages, engines)


def _grouped(
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
    """Quarantined rows, gaps, frames lost."""
    bounds = [start, end]
    (quarantined,) = only_row(connection, "SELECT count(*) FROM quarantine WHERE ts > ? AND ts <= ?", bounds)
    gaps, lost = only_row(
        connection, "SELECT count(*), coalesce(sum(frames_lost), 0) FROM gaps WHERE ts > ? AND ts <= ?", bounds
    )
    return int(quarantined), int(gaps), int(lost)


def _notes(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[str]:
    notes = [row[0] for row in connection.execute("SELECT text FROM notes").fetchall()]
    runs = connection.execute(
        """SELECT engine, ts, model_version, lag(model_version) OVER (PARTITION BY engine ORDER BY id) AS before
           FROM engines QUALIFY before IS NOT NULL AND ts > ? AND ts <= ? ORDER BY ts""",
        [start, end],
    ).fetchall()
    for engine, ts, version, before in runs:
        changed = "" if version == before else f", now {version} (before: {before})"
        notes.append(f"{engine} restarted at {ts:.3f}{changed}")
    return notes


def _columns(connection: duckdb.DuckDBPyConnection, query: str, values: list[float]) -> list[Ints]:
    """The result as int64 columns."""
    return [column.astype(np.int64) for column in connection.execute(query, values).fetchnumpy().values()]
