"""Puts the complete picture of a moment together: figures, engines, what is wrong, what happened."""

from __future__ import annotations

import time
from collections.abc import Iterable

from console.feed.messages import EngineView, GatewayView, LossView, Snapshot
from console.picturing.alert_views import judged
from console.picturing.bucket_views import BucketViews
from console.station.acts import RecentActs
from console.station.control import Control
from console.station.events import AlertBoard, Condition, EventLog
from console.station.facts import Facts
from console.station.recorder import Recorder
from console.station.scraper import Scraper
from console.station.snapshot import (
    Figured,
    engine_view,
    figured,
    loss_view,
    observed_figured,
    observed_view,
    store_view,
)
from console.station.trace_recording import TraceRecording


class Pictures:
    """Of a station with `control`, or of one that only observes through a `scraper`."""

    def __init__(
        self,
        station: str,
        recorder: Recorder,
        events: EventLog,
        control: Control | None,
        scraper: Scraper | None,
        recording: TraceRecording,
    ) -> None:
        self.started = time.time()
        self._station = station
        self._recorder = recorder
        self._events = events
        self._control = control
        self._scraper = scraper
        self._recording = recording
        self._views = BucketViews()
        self._alerts = AlertBoard()
        self._facts = Facts()
        self._acts = RecentActs()
        recorder.on_control = self._acts.take
        self._number = 0

    def take(self) -> Snapshot:
        """The complete picture of this moment."""
        now = time.time()
        self._number += 1
        figures, views = self._shown(now)
        gateway = self._control.gateway.view() if self._control is not None else None
        loss = loss_view(self._recorder)
        conditions = self._conditions(views, gateway, loss, now)
        control = self._control
        policy = control.shown_policy() if control is not None else None
        return Snapshot(
            station=self._station,
            number=self._number,
            ts=now,
            started=self.started,
            policy_version=policy.version if policy is not None else None,
            policy=policy.policy if policy is not None else None,
            cap=policy.cap if policy is not None else None,
            fallback=policy is not None and policy.fallback,
            workloads=control.deciding.views() if control is not None else [],
            unconfirmed=control.confirming.view() if control is not None else None,
            certificate=control.drills.view(control.main_record(), now) if control is not None else None,
            calibration=control.calibration.view() if control is not None else None,
            engines=views,
            gateway=gateway,
            store=store_view(self._recorder),
            loss=loss,
            total=figures.total,
            buckets=figures.buckets,
            alerts=[*judged(self._recorder.house.alerts), *self._alerts.update(conditions, now)],
            events=self._events.since()[-50:],
            tokens_per_second=figures.tokens_per_second,
            running=_sum(view.running for view in views),
            waiting=_sum(view.waiting for view in views),
            map=control.maps.view(control.serving_record()) if control is not None else None,
            rehearsal=control.rehearsals.view() if control is not None else None,
            acts=self._acts.views(now),
            recording=self._recording.view(),
            demo=control.demo.view() if control is not None else None,
        )

    def _shown(self, now: float) -> tuple[Figured, list[EngineView]]:
        """Figures and engines: from telemetry, or as they are observed."""
        scraper, control = self._scraper, self._control
        if scraper is not None:
            return observed_figured(scraper, now), [
                observed_view(scraper, seen, now) for seen in scraper.engines.values()
            ]
        if control is None:
            return figured(self._recorder, self._views, (), now), []
        roster = control.roster
        roster.forget_gone(now)
        figures = figured(self._recorder, self._views, roster.engines, now)
        views = [
            engine_view(known, roster.supervisor_of(known), control.book, figures.loads.get(known.engine), now)
            for known in roster.engines.values()
        ]
        return figures, views

    def _conditions(
        self, views: list[EngineView], gateway: GatewayView | None, loss: LossView, now: float
    ) -> list[Condition]:
        """What is wrong; of an observed engine only the scraper can say it."""
        known = self._control.roster.engines if self._control is not None else {}
        told = views if self._scraper is None else []
        found = self._facts.conditions(told, known, gateway, loss, self._recorder.error, now)
        found += self._recording.conditions()
        if self._control is not None:
            found += self._control.texts.conditions()
        return found if self._scraper is None else [*found, *self._scraper.conditions(now)]


def _sum(counts: Iterable[int | None]) -> int | None:
    """Of what is known; None where nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
