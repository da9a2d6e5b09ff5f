"""What was executed a moment ago: the last steps of an engine, and the rows of single requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from console.feed.protocol import RequestRows, RequestRowsParams, RequestRowsResult, Steps, StepsParams
from console.feed.server import FeedError
from console.picturing.request_rows import check_requests, rows_of

if TYPE_CHECKING:
    from console.station.station import Station


async def steps(station: Station, params: StepsParams, actor: str) -> Steps:
    if station.control is None:
        raise FeedError("refused", "this station only observes: it sees no steps")
    engine = params.engine or station.control.main_engine()
    return station.control.steps.steps(engine, params)


async def request_rows(station: Station, params: RequestRowsParams, actor: str) -> RequestRowsResult:
    check_requests(params)
    if station.control is None:
        raise FeedError("refused", "this station only observes: it sees no requests")
    return RequestRowsResult(await asyncio.to_thread(_stored, station, params.requests))


def _stored(station: Station, requests: list[str]) -> list[RequestRows]:
    """What came until now counts: it is written first."""
    station.recorder.flush_and_wait()
    with station.recorder.reading() as connection:
        return rows_of(connection, requests)
