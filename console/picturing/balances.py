"""What speculation cost and saved each workload, as a station and a replay answer it alike."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from console.feed.protocol import BalanceParams
from console.feed.server import FeedError
from engine.step_time.model import StepModel
from store.balance.balance import balance
from store.balance.records import Balance
from store.load import Runner
from store.report import ReportError


def balance_of(
    connection: duckdb.DuckDBPyConnection,
    models: Mapping[Runner, StepModel],
    params: BalanceParams,
    *,
    source: str,
    at: float | None,
) -> Balance:
    """`at`: when it ends, whatever the params say. Raises FeedError."""
    if params.most_rows is not None and params.most_rows < 1:
        raise FeedError("bad_params", f"balance: most_rows must be 1 or more, not {params.most_rows}")
    try:
        return balance(connection, models, source=source, window=params.window, at=at, most_rows=params.most_rows)
    except ReportError as error:
        raise FeedError("bad_params", f"balance: {error}") from error
