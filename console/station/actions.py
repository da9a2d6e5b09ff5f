"""What consoles may ask of a station: one short function for each method of the feed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from console.feed.messages import Series, Snapshot
from console.feed.protocol import (
    AlertAct,
    AlertsParams,
    ExportParams,
    Hello,
    LogChunk,
    LogParams,
    PolicyResult,
    PolicySet,
    ProcessesResult,
    ProcessView,
    ReportParams,
    SeriesParams,
    StopParams,
)
from console.feed.server import Endpoint, FeedError
from console.station.log_tail import read_chunk
from console.station.options import OWNED_ENGINE
from engine.policy import PolicyError, PolicyState, policy_diff
from engine.records import ControlRecord
from store.alerts import AlertHistory, AlertReport
from store.database import StoreError
from store.figures import BucketKey, Report
from store.judge.alerts import Alert
from store.judge.judge import Judge

if TYPE_CHECKING:
    from console.station.station import Station

_NOT_OWNED = (
    "specdeck did not start this engine, so it cannot restart it: restart it where you started it, "
    "it will announce itself here again"
)


class RestartParams(msgspec.Struct, frozen=True):
    engine: str = OWNED_ENGINE


def endpoints(station: Station) -> dict[str, Endpoint]:
    """The feed's methods, bound to one station."""
    actions = Actions(station)
    return {
        "hello": Endpoint(None, actions.hello),
        "snapshot": Endpoint(None, actions.snapshot),
        "series": Endpoint(SeriesParams, actions.series),
        "engine_log": Endpoint(LogParams, actions.engine_log),
        "policy_set": Endpoint(PolicySet, actions.policy_set),
        "engine_restart": Endpoint(RestartParams, actions.engine_restart),
        "report": Endpoint(ReportParams, actions.report),
        "export": Endpoint(ExportParams, actions.export),
        "alerts": Endpoint(AlertsParams, actions.alerts),
        "alert_act": Endpoint(AlertAct, actions.alert_act),
        "stop": Endpoint(StopParams, actions.stop),
        "processes": Endpoint(None, actions.processes),
    }


class Actions:
    def __init__(self, station: Station) -> None:
        self._station = station

    async def hello(self, _: None, actor: str) -> Hello:
        from importlib.metadata import version

        return Hello(station=self._station.id, specdeck=version("specdeck"))

    async def snapshot(self, _: None, actor: str) -> Snapshot:
        return self._station.snapshot()

    async def series(self, params: SeriesParams, actor: str) -> Series:
        if not 0 < params.seconds <= 30 * 86400 or not 0 < params.points <= 2000:
            raise FeedError("bad_params", "series: seconds must be within 30 days and points within 2000")
        key = BucketKey(*params.key) if params.key is not None else None
        now = time.time()
        recorder = self._station.recorder
        with recorder.lock:
            points = recorder.windows.series(key, params.seconds, params.points, now)
        return Series(
            key=key,
            cell_seconds=points[1].ts - points[0].ts if len(points) > 1 else params.seconds,
            points=points,
            marks=self._station.events.since(now - params.seconds),
        )

    async def engine_log(self, params: LogParams, actor: str) -> LogChunk:
        supervisor = self._station.supervisor
        if supervisor is None:
            raise FeedError("refused", "specdeck did not start an engine: its log is where you started it")
        return await asyncio.to_thread(read_chunk, supervisor.log_path, params)

    async def policy_set(self, params: PolicySet, actor: str) -> PolicyResult:
        book = self._station.book
        before = book.state
        if params.expect is not None and params.expect != before.version:
            raise FeedError(
                "refused",
                f"the policy is at version {before.version} by now, not {params.expect}: look again, then decide",
            )
        wanted = _changed(before, params)
        try:
            after = book.change(wanted)
        except PolicyError as error:
            raise FeedError("bad_params", str(error)) from error
        await self._station.publisher.send_all()
        self._remember(before, after, actor, params.why)
        return PolicyResult(after.version, after.policy)

    def _remember(self, before: PolicyState, after: PolicyState, actor: str, why: str | None) -> None:
        diff = policy_diff(before, after)
        action = "mode" if "policy" in diff else next(iter(diff), "mode")
        self._station.recorder.put(
            ControlRecord(
                ts=time.time(),
                actor=actor,
                action=action,
                before=_plain(action, before),
                after=_plain(action, after),
                policy=after.version,
                why=why,
            )
        )
        changes = ", ".join(f"{name} {_word(old)} → {_word(new)}" for name, (old, new) in diff.items()) or "unchanged"
        self._station.tell("control", f"{actor}: {changes} (policy {after.version})")

    async def engine_restart(self, params: RestartParams, actor: str) -> None:
        known = self._station.engines.get(params.engine)
        if known is None:
            raise FeedError("bad_params", f"there is no engine {params.engine!r}")
        if not known.owned or self._station.supervisor is None:
            raise FeedError("refused", _NOT_OWNED)
        self._station.recorder.put(
            ControlRecord(ts=time.time(), actor=actor, action="engine_restart", after={"engine": params.engine})
        )
        self._station.supervisor.restart()

    async def report(self, params: ReportParams, actor: str) -> Report:
        return await asyncio.to_thread(self._report, params)

    def _report(self, params: ReportParams) -> Report:
        from store.report import ReportError, report

        recorder = self._station.recorder
        recorder.flush_and_wait()
        try:
            with recorder.reading() as connection:
                return report(connection, source="live", by=params.by, window=params.window, at=params.at)
        except ReportError as error:
            raise FeedError("bad_params", str(error)) from error

    async def export(self, params: ExportParams, actor: str) -> str:
        if not Path(params.path).is_absolute():
            raise FeedError(
                "bad_params", f"export: {params.path!r} must be an absolute path, the station runs elsewhere"
            )
        return await asyncio.to_thread(self._export, params)

    def _export(self, params: ExportParams) -> str:
        from store.export import export

        recorder = self._station.recorder
        recorder.flush_and_wait()
        try:
            with recorder.reading() as connection:
                export(connection, Path(params.path), params.kind, since=params.since)
        except StoreError as error:
            raise FeedError("failed", str(error)) from error
        return params.path

    async def alerts(self, params: AlertsParams, actor: str) -> AlertHistory:
        return await asyncio.to_thread(self._alerts, params)

    def _alerts(self, params: AlertsParams) -> AlertHistory:
        from store.alerts import recent_history

        recorder = self._station.recorder
        recorder.flush_and_wait()
        with recorder.reading() as connection:
            return recent_history(connection, params.window)

    async def alert_act(self, params: AlertAct, actor: str) -> AlertReport:
        """Raises FeedError where there is no such alert, or where its level can't be accepted."""
        from store.alerts import reported
        from store.judge.book import UnknownAlert

        now = time.time()
        answer = self._station.recorder.tell_judge(lambda judge: acted(judge, params, actor, now))
        try:
            alert = await asyncio.wrap_future(answer)
        except (UnknownAlert, Refused) as error:
            raise FeedError("bad_params", str(error)) from error
        self._station.recorder.put(
            ControlRecord(ts=now, actor=actor, action=f"alert_{params.act}", after={"alert": params.id})
        )
        assert isinstance(alert, Alert)
        return reported(alert)

    async def stop(self, params: StopParams, actor: str) -> None:
        what = "station, gateway and engine" if params.everything else "the station; gateway and engine go on serving"
        self._station.tell("station", f"{actor}: stop {what}")
        # The reply leaves first: the end of the feed waits for answers that are under way.
        asyncio.get_running_loop().call_soon(self._station.stop, params.everything)

    async def processes(self, _: None, actor: str) -> ProcessesResult:
        station = self._station
        sockets = station.sockets
        return ProcessesResult(
            processes=list(_processes(station)),
            sockets={
                "telemetry": str(sockets.telemetry),
                "policy": str(sockets.policy),
                "feed": str(sockets.feed),
                "snapshots": str(sockets.snapshots),
                "engine_http": str(sockets.engine_http),
                "gateway_control": str(sockets.gateway_control),
            },
            store=station.options.store,
            engine_log=str(station.supervisor.log_path) if station.supervisor else None,
        )


class Refused(Exception):
    """The judge can't do that: says why."""


def acted(judge: Judge, params: AlertAct, actor: str, now: float) -> Alert:
    """Let the judge have the operator's word.

    Raises:
        UnknownAlert: there is no such alert.
        Refused: nothing is known of the level that should be accepted.
    """
    if params.act == "acknowledge":
        return judge.acknowledge(params.id, actor, now)
    if params.act == "snooze":
        return judge.snooze(params.id, now + params.seconds)
    if not judge.accept_alert(params.id, now):
        raise Refused(f"alert {params.id}: only the level of an acceptance alert can be accepted, once it is known")
    return judge.alert(params.id)


def _changed(before: PolicyState, params: PolicySet) -> PolicyState:
    if params.policy is not None and params.policy.mode == "adaptive":
        raise FeedError("refused", "this version has no adaptive controller yet: use off, static:K or a schedule")
    changes: dict[str, Any] = {}
    if params.policy is not None:
        changes["policy"] = params.policy
    if params.cap is not msgspec.UNSET:
        changes["cap"] = params.cap
    if params.fallback is not None:
        changes["fallback"] = params.fallback
    return msgspec.structs.replace(before, **changes)


def _plain(action: str, state: PolicyState) -> dict[str, Any]:
    """A control record's before and after: the mode by itself (as in design §7), other fields under their name."""
    if action == "mode":
        mode: dict[str, Any] = msgspec.to_builtins(state.policy)
        return mode
    return {action: msgspec.to_builtins(getattr(state, action))}


def _word(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _processes(station: Station) -> Iterator[ProcessView]:
    yield ProcessView("station", os.getpid(), True, station.options.store)
    gateway = station.gateway.view()
    yield ProcessView("gateway", gateway.pid, gateway.pid is not None, f"{gateway.state} {gateway.url}")
    supervisor = station.supervisor
    if supervisor is None:
        return
    yield ProcessView(f"engine {supervisor.engine}", supervisor.pid, supervisor.pid is not None, supervisor.state)
    for pid, name in supervisor.children().items():
        yield ProcessView(name, pid, True, f"of engine {supervisor.engine}")
