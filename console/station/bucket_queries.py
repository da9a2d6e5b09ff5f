"""What consoles ask of buckets that takes raw rows to answer: beside the recorder and off the event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from console.feed.bucket_detail import BucketDetail, BucketDetailParams, MarginalGain
from console.feed.protocol import BalanceParams
from console.feed.server import FeedError
from console.picturing import bucket_detail as details
from console.picturing.balances import balance_of
from console.picturing.marginal_points import with_marginals
from store.balance.records import Balance
from store.figures import BucketKey, SeriesPoint
from store.series_detail import detailed

if TYPE_CHECKING:
    from console.station.station import Station

OBSERVED: Final = "this station only observes: it sees no rows of a bucket"
NO_GAIN: Final = "the controller has none yet: it needs step times, and 30 rows of a workload that drafts"


async def in_detail(
    station: Station, key: BucketKey, points: list[SeriesPoint], seconds: float, now: float
) -> list[SeriesPoint]:
    """With the intervals and speedups that the store tells, up to its last flush. `seconds`: of a point's cell."""
    points = await asyncio.to_thread(_detailed, station, key, points, int(seconds), now)
    if station.control is None:
        return points
    return with_marginals(points, seconds, station.control.deciding.marginals.of(key.workload))


def _detailed(
    station: Station, key: BucketKey, points: list[SeriesPoint], seconds: int, now: float
) -> list[SeriesPoint]:
    with station.recorder.reading() as connection:
        return detailed(connection, key, points, seconds, station.recorder.house.models, now)


async def bucket_detail(station: Station, params: BucketDetailParams, actor: str) -> BucketDetail:
    control = station.control
    if control is None:
        raise FeedError("refused", OBSERVED)
    gains = control.deciding.marginals.of(params.key[0])
    engines = control.roster.engines.values()
    max_k = max([known.record.max_k or 0 for known in engines if known.record is not None], default=0)
    return await asyncio.to_thread(_detail, station, params, max_k, gains[-1] if gains else None)


def _detail(station: Station, params: BucketDetailParams, max_k: int, marginal: MarginalGain | None) -> BucketDetail:
    house = station.recorder.house
    with station.recorder.reading() as connection:
        return details.bucket_detail(
            connection, params, house.models, time.time(), max_k=max_k,
            level=details.level_of(house.levels.get(BucketKey(*params.key))), marginal=marginal,
            absent={"level": details.NO_LEVEL, "marginal": NO_GAIN},
        )  # fmt: skip


async def balance(station: Station, params: BalanceParams, actor: str) -> Balance:
    if station.control is None:
        raise FeedError("refused", OBSERVED)
    return await asyncio.to_thread(_balance, station, params)


def _balance(station: Station, params: BalanceParams) -> Balance:
    with station.recorder.reading() as connection:
        return balance_of(connection, station.recorder.house.models, params, source="live", at=params.at)
