"""Answers with the bucket table over a window that the operator fixed: from the live windows, as the picture is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from console.feed.fixed_window import FixedFigures, FixedWindow
from console.feed.server import FeedError
from console.picturing.bucket_views import BucketViews
from store.window_spans import place_of
from store.windows import RENEW_SECONDS

if TYPE_CHECKING:
    from console.station.station import Station

OBSERVED: Final = "this station only observes: it counts over one window, the last 5 minutes"

_BREATH_SECONDS: Final = 0.002
"""Between two holds of the windows' lock, so that recording and the picture come in between."""


async def buckets(station: Station, params: FixedWindow, actor: str) -> FixedFigures:
    if station.control is None:
        raise FeedError("refused", OBSERVED)
    try:
        place_of(params.window)
    except ValueError as error:
        raise FeedError("bad_params", f"buckets: {error}") from error
    return await asyncio.to_thread(_buckets, station, params.window)


def _buckets(station: Station, window: float) -> FixedFigures:
    """In pieces, so that the picture never waits long: a window that nobody asked for lately is made for all buckets,
    and the pool of all holds every sequence."""
    windows, lock, now = station.recorder.windows, station.recorder.lock, time.time()
    made = False
    while not made:
        with lock:
            made = windows.keep_up(now, window, RENEW_SECONDS)
        time.sleep(_BREATH_SECONDS)
    with lock:
        found = windows.buckets(now, window)
    time.sleep(_BREATH_SECONDS)
    with lock:
        total = windows.total(now, window)
    return FixedFigures(ts=now, window=window, total=total, buckets=BucketViews().of(found))
