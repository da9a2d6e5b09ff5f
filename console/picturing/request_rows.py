"""The stored rows of single requests, as the feed has them."""

from __future__ import annotations

from typing import Final

import duckdb

from console.feed.protocol import RequestRow, RequestRows, RequestRowsParams
from console.feed.server import FeedError
from store.requests import RequestSteps, request_steps

MOST_REQUESTS: Final = 1000
"""Ids that may be asked for at once: their rows are one answer."""


def check_requests(params: RequestRowsParams) -> None:
    """Raises FeedError where too many are asked for at once."""
    if len(params.requests) > MOST_REQUESTS:
        raise FeedError(
            "bad_params", f"request_rows: {len(params.requests)} ids; ask for at most {MOST_REQUESTS} at a time"
        )


def rows_of(connection: duckdb.DuckDBPyConnection, requests: list[str]) -> list[RequestRows]:
    """Those of `requests` that are stored."""
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
