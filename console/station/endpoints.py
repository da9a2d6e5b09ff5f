"""The feed's methods, bound to one station: one short function for each of them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from console.feed.bucket_detail import BucketDetailParams
from console.feed.fixed_window import FixedWindow
from console.feed.messages import RehearsalView, Snapshot
from console.feed.protocol import (
    AlertAct,
    AlertsParams,
    BalanceParams,
    DemoStart,
    DrillDone,
    ExportParams,
    FingerprintParams,
    Hello,
    HistoryParams,
    LogParams,
    MapPut,
    PolicyConfirm,
    PolicySet,
    PolicyUndo,
    RehearsalStart,
    RehearsalStop,
    ReportParams,
    RequestRowsParams,
    RestartParams,
    SeriesParams,
    SideParams,
    StepsParams,
    StopParams,
)
from console.feed.server import Endpoint, FeedError
from console.feed.texts import TextsWanted
from console.feed.traces import RecordingBegin, RecordingEnd, Traces, TracesParams
from console.station import bucket_queries, fixed_windows, queries, step_queries
from console.station.alert_act import alert_act
from console.station.demo_acts import demo_start, demo_stop
from console.station.drills import drill_done
from console.station.maps import engine_fingerprint, map_get, map_put
from console.station.policy_set import policy_set
from console.station.policy_undo import policy_confirm, policy_history, policy_undo
from console.station.processes import processes
from console.station.rehearsal_acts import rehearsal_progress, rehearsal_start, rehearsal_stop
from console.station.text_recording import record_text
from console.station.trace_recording import recording_begin, recording_end
from engine.records import ControlRecord

if TYPE_CHECKING:
    from console.station.station import Station

_NOT_OWNED = (
    "specdeck did not start this engine, so it cannot restart it: restart it where you started it, "
    "it will announce itself here again"
)


def endpoints(station: Station) -> dict[str, Endpoint]:
    methods: dict[str, tuple[Any, Any]] = {
        "hello": (None, hello),
        "snapshot": (None, snapshot),
        "series": (SeriesParams, queries.series),
        "buckets": (FixedWindow, fixed_windows.buckets),
        "bucket_detail": (BucketDetailParams, bucket_queries.bucket_detail),
        "engine_log": (LogParams, queries.engine_log),
        "policy_set": (PolicySet, policy_set),
        "policy_undo": (PolicyUndo, policy_undo),
        "policy_confirm": (PolicyConfirm, policy_confirm),
        "policy_history": (HistoryParams, policy_history),
        "steps": (StepsParams, step_queries.steps),
        "request_rows": (RequestRowsParams, step_queries.request_rows),
        "drill_done": (DrillDone, drill_done),
        "engine_restart": (RestartParams, engine_restart),
        "report": (ReportParams, queries.report),
        "balance": (BalanceParams, bucket_queries.balance),
        "span": (None, queries.span),
        "side": (SideParams, queries.side),
        "export": (ExportParams, queries.export),
        "trace_state": (None, queries.trace_state),
        "record_text": (TextsWanted, record_text),
        "traces": (TracesParams, traces),
        "recording_begin": (RecordingBegin, recording_begin),
        "recording_end": (RecordingEnd, recording_end),
        "alerts": (AlertsParams, queries.alerts),
        "alert_act": (AlertAct, alert_act),
        "stop": (StopParams, stop),
        "processes": (None, processes),
        "fingerprint": (FingerprintParams, engine_fingerprint),
        "map_get": (None, map_get),
        "map_put": (MapPut, map_put),
        "rehearsal_start": (RehearsalStart, rehearsal_start),
        "rehearsal_progress": (RehearsalView, rehearsal_progress),
        "rehearsal_stop": (RehearsalStop, rehearsal_stop),
        "demo_start": (DemoStart, demo_start),
        "demo_stop": (None, demo_stop),
    }
    return {name: Endpoint(params, partial(answer, station)) for name, (params, answer) in methods.items()}


async def hello(station: Station, _: None, actor: str) -> Hello:
    from importlib.metadata import version

    return Hello(station=station.id, specdeck=version("specdeck"))


async def snapshot(station: Station, _: None, actor: str) -> Snapshot:
    return station.snapshot()


async def traces(station: Station, params: TracesParams, actor: str) -> Traces:
    return await station.looker.traces(params)


async def engine_restart(station: Station, params: RestartParams, actor: str) -> None:
    control = station.control
    known = control.roster.engines.get(params.engine) if control is not None else None
    if control is None or known is None:
        raise FeedError("bad_params", f"there is no engine {params.engine!r}")
    supervisor = control.roster.supervisor_of(known)
    if supervisor is None:
        raise FeedError("refused", _NOT_OWNED)
    station.recorder.put(
        ControlRecord(ts=time.time(), actor=actor, action="engine_restart", after={"engine": params.engine})
    )
    supervisor.restart()


async def stop(station: Station, params: StopParams, actor: str) -> None:
    what = "station, gateway and engine" if params.everything else "the station; gateway and engine go on serving"
    station.tell("station", f"{actor}: stop {what}")
    # The reply leaves first: the end of the feed waits for answers that are under way.
    asyncio.get_running_loop().call_soon(station.stop, params.everything)
