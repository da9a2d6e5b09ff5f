"""What consoles may ask of a station and that changes nothing: series, log, report, export, alerts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from console.feed.messages import Series
from console.feed.protocol import (
    AlertsParams,
    ExportParams,
    LogChunk,
    LogParams,
    ReportParams,
    SeriesParams,
    SideParams,
)
from console.feed.server import FeedError
from console.station.bucket_queries import in_detail
from console.station.log_tail import read_chunk
from engine.records import StateRecord
from store.alerts import recent_history
from store.comparing.sides import Side
from store.database import StoreError
from store.figures import BucketKey, Report, Window
from store.judge.reports import AlertHistory
from store.series import range_of

if TYPE_CHECKING:
    import duckdb

    from console.station.station import Station


async def series(station: Station, params: SeriesParams, actor: str) -> Series:
    if not 0 < params.seconds <= 30 * 86400 or not 0 < params.points <= 2000:
        raise FeedError("bad_params", "series: seconds must be within 30 days and points within 2000")
    key = BucketKey(*params.key) if params.key is not None else None
    now = time.time()
    recorder = station.recorder
    with recorder.lock:
        points = recorder.windows.series(key, params.seconds, params.points, now)
    cell = float(range_of(params.seconds, params.points, now).cell_seconds)
    if params.detail and key is not None:
        points = await in_detail(station, key, points, cell, now)
    return Series(
        key=key,
        cell_seconds=cell,
        points=points,
        marks=station.events.since(now - params.seconds),
    )


async def engine_log(station: Station, params: LogParams, actor: str) -> LogChunk:
    supervisor = station.control.supervisor if station.control is not None else None
    if supervisor is None:
        raise FeedError("refused", "specdeck did not start an engine: its log is where you started it")
    return await asyncio.to_thread(read_chunk, supervisor.log_path, params)


async def report(station: Station, params: ReportParams, actor: str) -> Report:
    return await asyncio.to_thread(_report, station, params)


def _report(station: Station, params: ReportParams) -> Report:
    from store import report as reports

    try:
        with _recorded(station) as connection:
            return reports.report(connection, source="live", by=params.by, window=params.window, at=params.at)
    except reports.ReportError as error:
        raise FeedError("bad_params", str(error)) from error


async def span(station: Station, _: None, actor: str) -> Window | None:
    return await asyncio.to_thread(_span, station)


def _span(station: Station) -> Window | None:
    from store.report import recorded_span

    with _recorded(station) as connection:
        return recorded_span(connection)


async def side(station: Station, params: SideParams, actor: str) -> Side:
    return await asyncio.to_thread(_side, station, params)


def _side(station: Station, params: SideParams) -> Side:
    from store import report as reports
    from store.comparing import measure

    try:
        with _recorded(station) as connection:
            return measure.side(connection, source="live", by=params.by, start=params.start, end=params.end)
    except reports.ReportError as error:
        raise FeedError("bad_params", str(error)) from error


async def export(station: Station, params: ExportParams, actor: str) -> str:
    if not Path(params.path).is_absolute():
        raise FeedError("bad_params", f"export: {params.path!r} must be an absolute path, the station runs elsewhere")
    return await asyncio.to_thread(_export, station, params)


def _export(station: Station, params: ExportParams) -> str:
    from store import export as exports

    try:
        with _recorded(station) as connection:
            exports.export(
                connection, Path(params.path), params.kind, since=params.since, state=params.state,
                replace=params.replace,
            )  # fmt: skip
    except StoreError as error:
        raise FeedError("failed", str(error)) from error
    return params.path


async def trace_state(station: Station, _: None, actor: str) -> StateRecord:
    """What a recording begins with. It is made where the judge is fed: between two flushes, not beside them."""
    with station.recorder.reading() as connection:
        if connection.execute("FROM engines LIMIT 1").fetchone() is None:
            raise FeedError("refused", "no engine was recorded yet: begin once one is there, see `specdeck status`")
    return await asyncio.wrap_future(station.recorder.judge_state())


async def alerts(station: Station, params: AlertsParams, actor: str) -> AlertHistory:
    return await asyncio.to_thread(_alerts, station, params)


def _alerts(station: Station, params: AlertsParams) -> AlertHistory:
    with _recorded(station) as connection:
        return recent_history(connection, params.window)


@contextmanager
def _recorded(station: Station) -> Iterator[duckdb.DuckDBPyConnection]:
    """All that came until now, on disk and to be read. Waits: not for the event loop."""
    station.recorder.flush_and_wait()
    with station.recorder.reading() as connection:
        yield connection
