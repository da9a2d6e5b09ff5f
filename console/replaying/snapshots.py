"""A picture and what is known of the replay itself, as the snapshot that the feed carries."""

from __future__ import annotations

from typing import NamedTuple

from console.feed.messages import AlertView, Event, ReplayView, Snapshot, StoreView
from console.picturing.map_summary import summary
from console.replaying.opened import Opened
from console.replaying.picture import Picture
from engine.records import PolicyMode


class Station(NamedTuple):
    """Who tells it: id of the process, the running number of the snapshot, start in Unix seconds of today."""

    id: str
    number: int
    started: float


def snapshot_of(shown: Picture, station: Station, replay: ReplayView, opened: Opened, events: list[Event]) -> Snapshot:
    policy = shown.policy.state
    return Snapshot(
        station=station.id,
        number=station.number,
        ts=shown.ts,
        started=station.started,
        source="replay",
        replay=replay,
        policy_version=policy.version if policy is not None else _executed_version(shown),
        policy=policy.policy if policy is not None else _configured(shown),
        cap=policy.cap if policy is not None else None,
        fallback=policy is not None and policy.fallback,
        workloads=shown.policy.workloads(shown.running_by_workload),
        unconfirmed=shown.policy.unconfirmed(),
        engines=shown.engines,
        gateway=None,
        store=StoreView(str(opened.path), recording=False, rows=opened.rows, bytes=opened.bytes, error=opened.error),
        loss=shown.loss,
        total=shown.total,
        buckets=shown.buckets,
        alerts=[*_broken(opened.error, shown.ts), *shown.alerts],
        events=events,
        tokens_per_second=shown.tokens_per_second,
        running=sum(engine.running or 0 for engine in shown.engines),
        waiting=sum(engine.waiting or 0 for engine in shown.engines),
        map=None if shown.map.map is None else summary(shown.map.map, shown.map.stale),
    )


def _executed_version(shown: Picture) -> int | None:
    """Where nothing is recorded of who set the policy."""
    return max((engine.policy_applied for engine in shown.engines if engine.policy_applied is not None), default=None)


def _configured(shown: Picture) -> PolicyMode | None:
    return shown.engines[0].configured if shown.engines else None


def _broken(error: str | None, ts: float) -> list[AlertView]:
    """A trace that ends before its end."""
    if error is None:
        return []
    text = f"the trace can't be read any further: {error}"
    return [AlertView(kind="trace_broken", severity="critical", state="firing", text=text, started=ts)]
