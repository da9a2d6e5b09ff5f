"""SOURCE of a command: `live` is the running station, asked over its feed; else a .duckdb or a trace, read here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from console.cli.outcomes import BadInput, Unreachable
from console.cli.station import ask, running_station
from console.feed.protocol import AlertsParams, BalanceParams, ReportParams
from store.balance.records import Balance
from store.database import Store, StoreBusy, StoreError
from store.figures import Report
from store.judge.reports import AlertHistory
from store.judge.settings import JudgeSettings

LIVE: Final = "live"
_REPORT_SECONDS: Final = 120.0
_UNREADABLE: Final = (duckdb.IOException, duckdb.SerializationException, duckdb.FatalException)
_JUDGED_ALREADY: Final = "is for traces, and this was judged while it was recorded"


def load_report(source: str, by: list[str] | None, window: float | None, at: float | None) -> Report:
    """The report of a source, by the same function wherever it is read.

    Raises:
        BadInput: no such file, or no store and no trace.
        Unreachable: no station runs, or somebody else holds the store.
    """
    if source == LIVE:
        return ask("report", Report, ReportParams(by=by, window=window, at=at), seconds=_REPORT_SECONDS)
    from store.report import report

    with opened(source) as store:
        return report(store.connection, source=source, by=by, window=window, at=at)


def load_balance(source: str, window: float | None, at: float | None) -> Balance:
    """What speculation cost and saved each workload of a source. Raises as `load_report`."""
    if source == LIVE:
        return ask("balance", Balance, BalanceParams(window=window, at=at), seconds=_REPORT_SECONDS)
    from store.balance.balance import balance
    from store.step_models import step_models

    with opened(source) as store:
        models = step_models(store.connection)
        return balance(store.connection, models, source=source, window=window, at=at)


def load_alerts(source: str, window: float | None, settings: JudgeSettings | None = None) -> AlertHistory:
    """The alerts of a source that were not over `window` seconds before its end; None: all. Raises as `load_report`.

    `settings`: to judge a trace by. Stations and stores were judged as they recorded.
    """
    if source == LIVE:
        if settings is not None:
            raise BadInput(f"--speedup-floor {_JUDGED_ALREADY}: start the station with another")
        return ask("alerts", AlertHistory, AlertsParams(window=window), seconds=_REPORT_SECONDS)
    from store.alerts import recent_history

    with opened(source, settings) as store:
        return recent_history(store.connection, window)


@contextmanager
def opened(source: str, settings: JudgeSettings | None = None) -> Iterator[Store]:
    """A store or trace, opened for reading; a trace is judged by `settings`. Raises BadInput or Unreachable."""
    from store.source import is_database, open_source

    if not Path(source).exists():
        raise BadInput(f"{source}: no such file; SOURCE is `live`, a .duckdb or a trace")
    try:
        if settings is not None and Path(source).is_file() and is_database(Path(source)):
            raise BadInput(f"{source}: --speedup-floor {_JUDGED_ALREADY}: leave it out")
        store = open_source(Path(source), settings)
    except StoreBusy as error:
        raise Unreachable(_busy(source, error)) from error
    except (StoreError, OSError) as error:
        raise BadInput(str(error)) from error
    try:
        yield store
    except _UNREADABLE as error:
        raise BadInput(f"{source}: damaged or cut off: {str(error).strip().splitlines()[0]}") from error
    finally:
        store.close()


def _busy(source: str, error: StoreBusy) -> str:
    station = running_station()
    if station is not None and Path(station.info.store) == Path(source).absolute():
        return f"{source} is being recorded by the station (pid {station.pid}): leave SOURCE out to ask it"
    return str(error)
