"""What consoles may ask of a replay: as of its clock, where it matters. Each reads the store: not on the event loop."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from console.feed.bucket_detail import BucketDetail, BucketDetailParams
from console.feed.fixed_window import FixedFigures, FixedWindow
from console.feed.messages import Series
from console.feed.protocol import (
    AlertsParams,
    BalanceParams,
    ExportParams,
    History,
    HistoryParams,
    MapAnswer,
    ReportParams,
    RequestRowsParams,
    RequestRowsResult,
    SeriesParams,
    SideParams,
    Steps,
    StepsParams,
    StepView,
    WhatIfParams,
)
from console.feed.server import FeedError
from console.picturing import bucket_detail as details
from console.picturing.balances import balance_of
from console.picturing.history_entries import entries
from console.picturing.marginal_points import decided_gains
from console.picturing.request_rows import check_requests, rows_of
from console.replaying.alerts_then import alerts_then
from console.replaying.picture import map_then
from console.replaying.player import Player
from engine.policy import parse_mode
from store.balance.records import Balance
from store.comparing.sides import Side
from store.database import StoreError
from store.figures import Report
from store.judge.reports import AlertHistory, reported
from store.moments import started_engines, steps_until
from store.whatif.figures import WhatIf
from store.window_spans import place_of

LONGEST_HISTORY: Final = 2000
NO_LEVEL_HERE: Final = "a replay keeps no baselines"
NO_GAIN_HERE: Final = "on record only where the controller decided"


def series(player: Player, params: SeriesParams) -> Series:
    if not 0 < params.seconds <= 30 * 86400 or not 0 < params.points <= 2000:
        raise FeedError("bad_params", "series: seconds must be within 30 days and points within 2000")
    return player.series(params)


def buckets(player: Player, params: FixedWindow) -> FixedFigures:
    try:
        place_of(params.window)
    except ValueError as error:
        raise FeedError("bad_params", f"buckets: {error}") from error
    return player.fixed(params.window)


def bucket_detail(player: Player, params: BucketDetailParams) -> BucketDetail:
    """As of the clock. The judge's levels are not on record; of marginal gains, those that decisions were made by."""
    now = player.now()
    gains = list(decided_gains(player.timeline.controls_until(now), params.key[0]))
    with player.opened.reading() as connection:
        engines = started_engines(connection, now)
        return details.bucket_detail(
            connection, params, player.models, now,
            max_k=max([one.record.max_k or 0 for one in engines], default=0),
            level=None, marginal=gains[-1] if gains else None,
            absent={"level": NO_LEVEL_HERE, "marginal": NO_GAIN_HERE},
        )  # fmt: skip


def report(player: Player, params: ReportParams) -> Report:
    from store import report as reports

    at = player.now() if params.at is None else params.at
    try:
        with player.opened.reading() as connection:
            source = str(player.opened.path)
            return reports.report(connection, source=source, by=params.by, window=params.window, at=at)
    except reports.ReportError as error:
        raise FeedError("bad_params", str(error)) from error


def side(player: Player, params: SideParams) -> Side:
    """Nothing of it lies after the clock."""
    from store import report as reports
    from store.comparing import measure

    now = player.now()
    end = now if params.end is None else min(now, params.end)
    try:
        with player.opened.reading() as connection:
            source = str(player.opened.path)
            return measure.side(connection, source=source, by=params.by, start=params.start, end=end)
    except reports.ReportError as error:
        raise FeedError("bad_params", str(error)) from error


def balance(player: Player, params: BalanceParams) -> Balance:
    """As of the clock, by the step times of all that was taken in."""
    at = player.now() if params.at is None else params.at
    with player.opened.reading() as connection:
        return balance_of(connection, player.models, params, source=str(player.opened.path), at=at)


def alerts(player: Player, params: AlertsParams) -> AlertHistory:
    """Those that had fired or were pending by the clock, as they stood; `window` counts back from it."""
    now = player.now()
    since = 0.0 if params.window is None else now - params.window
    shown = [
        alert
        for alert in alerts_then(player.timeline.alerts, now, over=True)
        if alert.ended is None or alert.ended >= since
    ]
    return AlertHistory(alerts=[reported(alert) for alert in shown])


def policy_history(player: Player, params: HistoryParams) -> History:
    """What was done by the clock, newest first. Nothing of it can be taken back in a recording."""
    if not 0 < params.limit <= LONGEST_HISTORY:
        raise FeedError("bad_params", f"limit: must be 1 to {LONGEST_HISTORY}, not {params.limit}")
    now = player.now()
    records = player.timeline.controls_until(now)[::-1]
    return History(entries(records, params.workload, lambda version: False, now)[: params.limit])


def map_get(player: Player, _: None) -> MapAnswer:
    """The operating map that held by the clock."""
    now = player.now()
    with player.opened.reading() as connection:
        return map_then(player.timeline, connection, now)


def steps(player: Player, params: StepsParams) -> Steps:
    """The last steps before the clock of an engine's present process."""
    now = player.now()
    with player.opened.reading() as connection:
        engines = {one.record.engine: one for one in started_engines(connection, now)}
        if not engines or (params.engine is not None and params.engine not in engines):
            return Steps(params.engine or "", "", [])
        engine = engines[params.engine] if params.engine is not None else next(iter(engines.values()))
        found = steps_until(connection, engine.run, params.after, max(0, params.limit), now)
    return Steps(engine.record.engine, engine.record.boot or "", [StepView(*step) for step in found])


def request_rows(player: Player, params: RequestRowsParams) -> RequestRowsResult:
    check_requests(params)
    with player.opened.reading() as connection:
        return RequestRowsResult(rows_of(connection, params.requests))


def export(player: Player, params: ExportParams) -> str:
    """The whole record, wherever the clock stands."""
    from store import export as exports

    if not Path(params.path).is_absolute():
        raise FeedError("bad_params", f"export: {params.path!r} must be an absolute path, the replay runs elsewhere")
    _require_all(player, "export")
    if params.replace and Path(params.path).resolve() == player.opened.path.resolve():
        raise FeedError("bad_params", f"export: {params.path} is what is replayed: choose another name")
    try:
        with player.opened.reading() as connection:
            out = Path(params.path)
            exports.export(connection, out, params.kind, since=params.since, replace=params.replace)
    except StoreError as error:
        raise FeedError("failed", str(error)) from error
    return params.path


def whatif(player: Player, params: WhatIfParams) -> list[WhatIf]:
    from store.whatif import what_if

    try:
        policies = [parse_mode(text) for text in params.policies]
        with player.opened.reading() as connection:
            return what_if(connection, policies, params.start, params.end)
    except ValueError as error:  # a policy that is none, or one that can't be asked for
        raise FeedError("bad_params", f"whatif: {error}") from error


def _require_all(player: Player, what: str) -> None:
    if not player.opened.complete:
        share = 100 * player.opened.share
        raise FeedError(
            "refused", f"{what}: the trace is still being read ({share:.0f} %); ask again when it is complete"
        )
