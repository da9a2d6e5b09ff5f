"""A bucket as a row of the live table: its figures, a sparkline of its acceptance, the mix of its draft lengths."""

from __future__ import annotations

from typing import Final

import msgspec

from store.counts import RATIO_UNIT
from store.figures import BucketKey, Figures
from store.levels import CELL_SECONDS
from store.metrics import divided
from store.series import DRAFT_STEPS, RATIO, Ring, grouped

SPARK_POINTS: Final = 30
SPARK_CELLS: Final = 3


class BucketWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the live table; fields as in the feed's bucket view."""

    key: BucketKey
    figures: Figures
    window_label: str
    spark: list[float | None]
    """α over the last 15 minutes, oldest first; None where nothing was drafted."""
    k_mix: list[float]
    """Share of decode rows at k_asked 0, 1, 2, …"""
    last_seen: float


def bucket_window(
    key: BucketKey, shown: Figures, window_label: str, ring: Ring, last_seen: float, now: float
) -> BucketWindow:
    return BucketWindow(
        key=key,
        figures=shown,
        window_label=window_label,
        spark=_spark(ring, now),
        k_mix=_k_mix(shown),
        last_seen=last_seen,
    )


def _k_mix(shown: Figures) -> list[float]:
    """Share of decode rows at k_asked 0, 1, 2, … up to the largest that occurs."""
    if not shown.k_histogram:
        return []
    largest = max(int(k) for k in shown.k_histogram)
    rows = sum(shown.k_histogram.values())
    return [shown.k_histogram.get(str(k), 0) / rows for k in range(largest + 1)]


def _spark(ring: Ring, now: float) -> list[float | None]:
    last = int(now // CELL_SECONDS)
    cells = grouped(ring.read(last - SPARK_POINTS * SPARK_CELLS + 1, last), SPARK_CELLS)
    return [divided(int(cell[RATIO]), RATIO_UNIT * int(cell[DRAFT_STEPS])) for cell in cells]
