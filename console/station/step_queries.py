"""What was executed a moment ago: the last steps of an engine, and the rows of single requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from console.feed.protocol import RequestRow, RequestRows, RequestRowsParams, RequestRowsResult, Steps, StepsParams
from console.feed.server import FeedError
from store.requests import RequestSteps, request_steps

if TYPE_CHECKING:
    from console.station.station import Station

MOST_REQUESTS: Final = 1000
"""Ids that may be asked for at once: their rows are one answer."""


async def steps(station: Station, params: StepsParams, actor: str) -> Steps:
    if station.control is None:
        raise FeedError("refused", "this station only observes: it sees no steps")
    engine = params.engine or station.control.main_engine()
    return station.control.steps.steps(engine, params)


async def request_rows(station: Station, params: RequestRowsParams, actor: str) -> RequestRowsResult:
    if len(params.requests) > MOST_REQUESTS:
        raise FeedError(
            "bad_params", f"request_rows: {len(params.requests)} ids; ask for at most {MOST_REQUESTS} at a time"
        )
    if station.control is None:
        raise FeedError("refused", "this station only observes: it sees no requests")
    return RequestRowsResult(await asyncio.to_thread(_stored, station, params.requests))


def _stored(station: Station, requests: list[str]) -> list[RequestRows]:
    """What came until now counts: it is written first."""
    station.recorder.flush_and_wait()
    with station.recorder.reading() as connection:
        return [_rows(found) for found in request_steps(connection, requests)]


def _rows(found: RequestSteps) -> RequestRows:
    return RequestRows(
        request=found.request,
        engine=found.engine,
        workload=found.workload,
        disable_speculation=found.disable_speculation,
        lane=found.lane,
        rows=[RequestRow(*step) for step in found.steps],
    )
