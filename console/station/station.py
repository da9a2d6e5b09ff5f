"""The station: receiver, publisher, supervisors, recorder and feed on one event loop, ended in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq.asyncio

from console.feed.messages import EngineView, GatewayView, LossView, Snapshot
from console.feed.server import FeedServer
from console.statefile import StationInfo, state_path, write_station
from console.station.actions import endpoints
from console.station.engine_supervisor import EngineSupervisor
from console.station.engines import KnownEngine
from console.station.events import AlertBoard, Condition, EventLog
from console.station.facts import Facts
from console.station.gateway_supervisor import GatewaySupervisor
from console.station.metrics_server import MetricsServer
from console.station.options import OWNED_ENGINE, StationOptions
from console.station.policy import PolicyBook, PolicyPublisher
from console.station.recorder import Broken, Received, Recorder
from console.station.scraper import Scraper, read_address, scrape_seconds
from console.station.snapshot import (
    SNAPSHOT_SECONDS,
    Figured,
    engine_view,
    figured,
    judged,
    loss_view,
    observed_figured,
    observed_view,
    store_view,
)
from console.station.telemetry import TelemetryReceiver
from engine.frames import Announcement, Frame
from engine.policy import PolicyError, PolicyState
from engine.records import GapRecord, PolicyMode
from engine.sockets import Sockets

log = logging.getLogger(__name__)

PUBLISH_SECONDS: Final = 1.0
FORGET_AFTER_SECONDS: Final = 600.0

_OBSERVES_ONLY: Final = "this station only observes: its engine's policy is set where that was started"


class _FixedBook(PolicyBook):
    """Of a station that only observes: nobody would hear of a change."""

    def change(self, state: PolicyState) -> PolicyState:
        raise PolicyError(_OBSERVES_ONLY)


class Station:
    """All of one station's state. Everything but the recorder's thread runs on the event loop."""

    def __init__(
        self, options: StationOptions, sockets: Sockets, recorder: Recorder, events: EventLog, logs: Path
    ) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.options = options
        self.sockets = sockets
        self.recorder = recorder
        self.events = events
        self.started = time.time()
        self.engines: dict[str, KnownEngine] = {}
        self.context = zmq.asyncio.Context()
        self.scraper: Scraper | None = None
        if options.scrape is not None:
            self.scraper = Scraper(read_address(options.scrape), recorder.put, self.tell, scrape_seconds())
        self.supervisor: EngineSupervisor | None = None
        if options.engine and self.scraper is None:
            self.supervisor = EngineSupervisor(options, sockets, logs / f"engine-{OWNED_ENGINE}.log", self.tell)
            self.engines[OWNED_ENGINE] = KnownEngine(OWNED_ENGINE, owned=True)
        self.gateway = GatewaySupervisor(options, sockets, self.context, logs / "gateway.log", self.tell)
        self.book = self._policy_book()
        self.publisher = PolicyPublisher(self.context, sockets, self.id, self.book)
        self.receiver: TelemetryReceiver | None = None
        if self.scraper is None:
            self.receiver = TelemetryReceiver(self.context, sockets, self._take, self._take_broken)
        self.feed = FeedServer(self.context, sockets, endpoints(self))
        self.metrics = MetricsServer(options.metrics_port, lambda: self._picture)
        self._picture: Snapshot | None = None
        self._alerts = AlertBoard()
        self._facts = Facts()
        self._number = 0
        self._stopping = asyncio.Event()
        self._stop_everything = False

    def tell(self, kind: str, text: str) -> None:
        """Something happened: to the screen's list of events and to the log."""
        self.events.tell(kind, text)

    def stop(self, everything: bool) -> None:
        """Begin to end; `everything` ends gateway and engine too."""
        self._stop_everything = self._stop_everything or everything
        self._stopping.set()

    async def run(self) -> None:
        """Serve until stopped."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop, self.options.stop_all_on_signal)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # the terminal of whoever started it has gone
        self.recorder.start()
        self._write_state()
        tasks = [asyncio.create_task(self._keep(work), name=work.__qualname__) for work in self._work()]
        self.tell("station", f"station {self.id} started")
        await self._stopping.wait()
        await self._end(tasks)

    def _work(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        work: list[Callable[[], Coroutine[Any, Any, None]]] = [self.feed.serve, self._publish_snapshots]
        if self.receiver is not None:
            work += [self.receiver.receive, self.publisher.watch_subscriptions, self._publish_policy, self.gateway.run]
        if self.scraper is not None:
            work.append(self.scraper.run)
        if self.options.metrics_port:
            work.append(self.metrics.run)
        return work if self.supervisor is None else [*work, self.supervisor.run]

    async def _keep(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A fault in one part is logged and that part goes on; the others never notice."""
        while True:
            try:
                await work()
            except Exception as error:
                log.exception("%s failed and is taken up again", work.__qualname__)
                self.events.add(time.time(), "station", f"{work.__qualname__}: {type(error).__name__}: {error}")
                await asyncio.sleep(1.0)

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        await self.feed.drain()
        supervising = {self.gateway.run.__qualname__, EngineSupervisor.run.__qualname__}
        for task in tasks:
            if task.get_name() in supervising:
                task.cancel()
        if self._stop_everything:
            await self.gateway.stop()  # first: it lets running answers finish while the engine still makes them
            if self.supervisor is not None:
                await self.supervisor.stop()
        self._record_open_outages()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self.recorder.stop)
        state_path(self.sockets.directory, "station").unlink(missing_ok=True)
        self.feed.close()
        self.publisher.close()
        if self.receiver is not None:
            self.receiver.close()
        self.context.term()

    def _write_state(self) -> None:
        info = StationInfo(
            station=self.id,
            store=self.options.store,
            base_url=self.options.base_url if self.scraper is None else self.scraper.shown,
            foreground=self.options.stop_all_on_signal,
        )
        write_station(self.sockets.directory, info, self.options.log or "")

    def _policy_book(self) -> PolicyBook:
        adopted = self.supervisor is not None and self.supervisor.adopt()
        if self.supervisor is not None and not adopted and self.supervisor.was_left_behind():
            # It died while no station looked: what lies between its last record and its successor is an outage.
            self.engines[OWNED_ENGINE].died_unseen(self.recorder.last_heard(OWNED_ENGINE))
            self.supervisor.last_broken = "engine and station were down"
        book = PolicyBook if self.scraper is None else _FixedBook
        return book(
            state_path(self.sockets.directory, "policy"),
            PolicyMode(mode="static", k=self.options.max_k),
            owned=None if self.supervisor is None else OWNED_ENGINE,
            resume=adopted or self.supervisor is None,
            floor=self.recorder.highest_policy(),
        )

    # Telemetry, on the event loop.

    def _take(self, message: Frame | Announcement) -> None:
        now = time.time()
        if isinstance(message, Frame):
            known = self._known(message.engine)
            self._meet(known, message.boot, now)
            version = message.step.policy if message.step is not None else 0
            known.take_frame(message, self.book.at(version, message.engine), now)
        else:
            known = self._known(message.record.engine)
            self._meet(known, message.boot, now)
            self._take_announcement(known, message, now)
        self.recorder.put(Received(message, now))

    def _meet(self, known: KnownEngine, boot: str, now: float) -> None:
        """Another process under the same name: what lies between the two is an outage."""
        last_heard = known.meet(boot)
        if last_heard is None:
            return
        why = self.supervisor.last_broken if known.owned and self.supervisor is not None else None
        reason = why or "the engine was started anew"
        self.recorder.put(GapRecord(engine=known.engine, ts=now, frames_lost=0, since=last_heard, reason=reason))

    def _take_announcement(self, known: KnownEngine, message: Announcement, now: float) -> None:
        record = message.record
        if known.record is None or known.record.boot != record.boot:
            version = f"{record.target} · {record.method} · vLLM {record.vllm}"
            self.tell("engine", f"{record.engine} announced itself: {version}")
        known.take_announcement(message, now)
        if not known.owned and not self.book.chosen:
            self.book.leave_own(record.engine, record.configured)
        if self.book.raise_above(message.policy):
            log.info("%s executes policy %d of another station: going on above it", record.engine, message.policy)

    def _take_broken(self, reason: str) -> None:
        self.recorder.put(Broken(reason))

    def _known(self, engine: str) -> KnownEngine:
        known = self.engines.get(engine)
        if known is None:
            known = self.engines[engine] = KnownEngine(engine, owned=False)
        return known

    def _record_open_outages(self) -> None:
        """An engine that is down while the station ends: what is missing until now is a gap too."""
        supervisor = self.supervisor
        if supervisor is None or supervisor.state not in ("restarting", "failed"):
            return
        known = self.engines[OWNED_ENGINE]
        if known.heard is not None:
            why = supervisor.last_broken or "engine down"
            self.recorder.put(
                GapRecord(engine=OWNED_ENGINE, ts=time.time(), frames_lost=0, since=known.heard, reason=why)
            )

    # What goes out by the clock.

    async def _publish_policy(self) -> None:
        while True:
            await self.publisher.send_all()
            await asyncio.sleep(PUBLISH_SECONDS)

    async def _publish_snapshots(self) -> None:
        due = time.monotonic()
        while True:
            self._picture = self.snapshot()
            await self.feed.publish(self._picture)
            due = max(due + SNAPSHOT_SECONDS, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    def snapshot(self) -> Snapshot:
        """The complete picture of this moment."""
        now = time.time()
        self._number += 1
        self._forget_gone(now)
        figures, views = self._shown(now)
        gateway = self.gateway.view() if self.scraper is None else None
        loss = loss_view(self.recorder)
        conditions = self._conditions(views, gateway, loss, now)
        shown = self._shown_policy()
        return Snapshot(
            station=self.id,
            number=self._number,
            ts=now,
            started=self.started,
            policy_version=shown.version,
            policy=shown.policy,
            cap=shown.cap,
            fallback=shown.fallback,
            engines=views,
            gateway=gateway,
            store=store_view(self.recorder),
            loss=loss,
            total=figures.total,
            buckets=figures.buckets,
            alerts=[*judged(self.recorder.house.alerts), *self._alerts.update(conditions, now)],
            events=self.events.since()[-50:],
            tokens_per_second=figures.tokens_per_second,
            running=sum(view.running for view in views),
            waiting=sum(view.waiting for view in views),
        )

    def _shown(self, now: float) -> tuple[Figured, list[EngineView]]:
        """Figures and engines: from telemetry, or as they are observed."""
        if self.scraper is not None:
            seen = self.scraper.engines.values()
            return observed_figured(self.scraper, now), [observed_view(self.scraper, one, now) for one in seen]
        figures = figured(self.recorder, self.engines, now)
        views = [
            engine_view(known, self._supervisor_of(known), self.book, figures.loads.get(known.engine), now)
            for known in self.engines.values()
        ]
        return figures, views

    def _conditions(
        self, views: list[EngineView], gateway: GatewayView | None, loss: LossView, now: float
    ) -> list[Condition]:
        """What is wrong; of an observed engine only the scraper can say it."""
        told = views if self.scraper is None else []
        found = self._facts.conditions(told, self.engines, gateway, loss, self.recorder.error, now)
        return found if self.scraper is None else [*found, *self.scraper.conditions(now)]

    def _forget_gone(self, now: float) -> None:
        """An engine of somebody else that was ended is no alarm for ever."""
        for name, known in list(self.engines.items()):
            if not known.owned and known.heard is not None and now - known.heard > FORGET_AFTER_SECONDS:
                del self.engines[name]
                self.tell("engine", f"{name} was not heard of for {FORGET_AFTER_SECONDS / 60:.0f} min: forgotten")

    def _supervisor_of(self, known: KnownEngine) -> EngineSupervisor | None:
        return self.supervisor if known.owned else None

    def _shown_policy(self) -> PolicyState:
        """That of our engine, else of the first one there is; of an observed engine none is known."""
        if self.scraper is not None:
            unknown = PolicyMode(mode="off", reason=_OBSERVES_ONLY)
            return msgspec.structs.replace(self.book.state, policy=unknown, cap=None, fallback=False)
        return self.book.for_engine(OWNED_ENGINE if self.supervisor is not None else next(iter(self.engines), ""))
