"""The figures of the bucket table over a window that the operator fixed: params and result of `buckets`."""

from __future__ import annotations

import msgspec

from console.feed.messages import BucketView
from store.figures import Figures


class FixedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `buckets`. `window`: seconds, as of one of `store.window_spans.SPANS`."""

    window: float


class FixedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot's `total` and `buckets` would be, had every one of them this window. Alerts are judged over
    windows of their own: they stay what the snapshot says."""

    ts: float
    """The moment, Unix seconds; in a replay of the record."""
    window: float
    total: Figures | None
    buckets: list[BucketView]
