"""Takes one side of a comparison from a store: the report's figures, and what two sides are held together by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import duckdb
import numpy as np

from store.comparing.configuration import configuration
from store.comparing.depths import Depths
from store.comparing.sides import DEFAULT_KEYS, Measured, Side
from store.figures import Figures
from store.gather import stretch_of
from store.report import ReportError, grouped, recorded_span, report


def side(
    connection: duckdb.DuckDBPyConnection,
    *,
    source: str,
    by: Sequence[str] | None = None,
    start: float | None = None,
    end: float | None = None,
) -> Side:
    """Figures, depths and configuration of (start, end], Unix seconds of record time.

    Args:
        by: keys to tell buckets apart by, as in `report`. None: `DEFAULT_KEYS`.

    Raises:
        ReportError: an unknown key, or a stretch that ends before it begins.
    """
    keys = tuple(dict.fromkeys(DEFAULT_KEYS if by is None else by))
    if start is not None and end is None:
        end = _ended(connection, start)
    if start is not None and end is not None and not start < end:
        raise ReportError(f"a stretch that ends at {end!r} can't begin at {start!r}")
    window = end - start if start is not None and end is not None else None
    found = report(connection, source=source, by=keys, window=window, at=end)
    stretch = stretch_of(connection, -math.inf if start is None else start, math.inf if end is None else end)
    depths = Depths(connection, stretch)
    members = dict(grouped(connection, keys))
    everything = np.any([*members.values()], axis=0) if members else np.zeros(0, dtype=bool)

    def measured(figures: Figures) -> Measured:
        where = members.get(tuple(getattr(figures, key) for key in keys))
        return Measured(figures, [] if where is None else depths.of(where))

    runs, settings = configuration(connection, stretch.start, stretch.end)
    return Side(
        source=source,
        start=start,
        end=end,
        window=found.window,
        keys=list(keys),
        buckets=[measured(figures) for figures in found.buckets],
        total=None if found.total is None else Measured(found.total, depths.of(everything)),
        settings=settings,
        runs=runs,
        quarantined=found.quarantined,
        gaps=found.gaps,
        frames_lost=found.frames_lost,
        notes=found.notes,
    )


def _ended(connection: duckdb.DuckDBPyConnection, start: float) -> float:
    """The end of a stretch that is open there: the last record, and never before its start."""
    span = recorded_span(connection)
    return max(start + 1, span.end if span is not None else 0.0)
