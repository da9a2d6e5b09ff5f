"""The picture of a moment of the record, from its windows and tables: what a station would have shown then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import duckdb

from console.feed.messages import AlertView, BucketView, EngineView, LossView
from console.feed.protocol import MapAnswer
from console.picturing.alert_views import alert_views
from console.picturing.bucket_views import BucketViews, as_feed
from console.picturing.engine_record import told_by
from console.picturing.map_summary import stale
from console.replaying.alerts_then import alerts_then
from console.replaying.policy_then import PolicyThen
from console.replaying.timeline import Timeline
from store.buckets import CALIBRATION, UNATTRIBUTED
from store.engine_loads import EngineLoad
from store.figures import Figures
from store.last_steps import live_sequences
from store.moments import StartedEngine, dark_engines, losses, started_engines
from store.resolved import resolved_by
from store.still_windows import StillWindows
from store.windows import LiveWindows


class Picture(NamedTuple):
    """All but what depends on the replay itself."""

    ts: float
    policy: PolicyThen
    engines: list[EngineView]
    running_by_workload: dict[str, int]
    loss: LossView
    total: Figures | None
    buckets: list[BucketView]
    alerts: list[AlertView]
    tokens_per_second: float | None
    map: MapAnswer


def picture_of(
    ts: float,
    judged: float,
    windows: LiveWindows | StillWindows,
    views: BucketViews,
    timeline: Timeline,
    connection: duckdb.DuckDBPyConnection,
) -> Picture:
    """`windows` stand at `ts`, Unix seconds of the record; the judge had come to `judged`."""
    engines = started_engines(connection, ts)
    policy = timeline.policy.at(ts)
    running: dict[str, int] = {}
    for one in engines:
        for workload, count in live_sequences(connection, one.run, ts).items():
            if workload in (CALIBRATION, UNATTRIBUTED):
                continue
            running[workload] = running.get(workload, 0) + count
    return Picture(
        ts=ts,
        policy=policy,
        engines=list(_engines(engines, windows, policy, dark_engines(connection, ts), ts)),
        running_by_workload=running,
        loss=as_feed(LossView, _Losses(*losses(connection, ts))),
        total=windows.total(ts),
        buckets=views.of(windows.buckets(ts)),
        alerts=alert_views(alerts_then(timeline.alerts, judged)),
        tokens_per_second=windows.tokens_per_second(ts),
        map=map_then(timeline, connection, ts),
    )


def map_then(timeline: Timeline, connection: duckdb.DuckDBPyConnection, ts: float) -> MapAnswer:
    """The operating map that held then, against the first engine that drafted then. Whose it was no record says; what
    an engine ran on only its own, as far as it was written there."""
    made = timeline.map_at(ts)
    if made is None:
        return MapAnswer(map=None)
    dark = dark_engines(connection, ts)
    records = [one.record for one in started_engines(connection, ts) if one.record.engine not in dark]
    record = next((one for one in records if one.max_k > 0), None)
    hardware = None if record is None else record.hardware
    return MapAnswer(map=made, stale=stale(made, record, hardware), engine=None if record is None else record.engine)


class _Losses(NamedTuple):
    gaps: int
    frames_lost: int
    quarantined: int
    unattributed: int
    broken_messages: int = 0


def _engines(
    engines: Iterable[StartedEngine],
    windows: LiveWindows | StillWindows,
    policy: PolicyThen,
    dark: dict[str, str | None],
    ts: float,
) -> Iterator[EngineView]:
    for one in engines:
        load = windows.engine_load(one.record.engine)
        yield _engine(one, load if one.record.engine not in dark else None, policy, dark, ts)


def _engine(
    started: StartedEngine, load: EngineLoad | None, policy: PolicyThen, dark: dict[str, str | None], ts: float
) -> EngineView:
    record = started.record
    lost = record.engine in dark
    configured = policy.state.policy if policy.state is not None else record.configured
    return EngineView(
        engine=record.engine,
        owned=False,
        state="lost" if lost else "serving",
        detail=(dark[record.engine] or "nothing is known of this stretch") if lost else "",
        restarts=started.restarts,
        configured=configured,
        resolved=resolved_by(record, configured),
        executed_k=load.executed_k if load is not None else None,
        executed_limit=load.executed_limit if load is not None else None,
        running=load.running if load is not None else 0,
        waiting=load.waiting if load is not None else 0,
        policy_sent=policy.state.version if policy.state is not None else None,
        policy_applied=load.policy if load is not None else None,
        last_frame_age=None if load is None else max(0.0, ts - load.last_frame),
        **told_by(record),
    )
