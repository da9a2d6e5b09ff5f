"""The station: recorder, feed, and either the engines that report to it or one that it observes, ended in order."""

from __future__ import annotations

import asyncio
import importlib
import logging
import signal
import time
import uuid
from pathlib import Path

import zmq.asyncio

from console.feed.messages import Snapshot
from console.feed.server import FeedServer
from console.looking.looker import Looker
from console.statefile import StationInfo, state_path, write_station
from console.station.control import Control, Work
from console.station.endpoints import endpoints
from console.station.events import EventLog
from console.station.metrics_server import MetricsServer
from console.station.notifying import Notifying
from console.station.options import StationOptions
from console.station.pictures import Pictures
from console.station.recorder import Recorder
from console.station.scrape_address import read_address, scrape_seconds
from console.station.scraper import Scraper
from console.station.snapshot import SNAPSHOT_SECONDS
from console.station.trace_recording import TraceRecording
from console.station.webhook import Webhook
from console.station.webhook_address import read_webhook
from engine.sockets import Sockets

log = logging.getLogger(__name__)


class Station:
    """Everything but the recorder's thread runs on the event loop. `control` is None in one that only observes."""

    def __init__(
        self, options: StationOptions, sockets: Sockets, recorder: Recorder, events: EventLog, logs: Path
    ) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.options = options
        self.sockets = sockets
        self.recorder = recorder
        self.events = events
        self.control: Control | None = None
        self._context = zmq.asyncio.Context()
        self._scraper: Scraper | None = None
        if options.scrape is None:
            self.control = Control(self.id, options, sockets, self._context, recorder, self.tell, logs)
        else:
            self._scraper = Scraper(read_address(options.scrape), recorder.put, self.tell, scrape_seconds())
        self._feed = FeedServer(self._context, sockets, endpoints(self))
        self._metrics = MetricsServer(options.metrics_port, lambda: self._picture)
        self.recording = TraceRecording(recorder, self.tell)
        self.looker = Looker()
        self._pictures = Pictures(self.id, recorder, events, self.control, self._scraper, self.recording)
        self._picture: Snapshot | None = None
        self._notifying = self._webhook()
        self._stopping = asyncio.Event()
        self._stop_everything = False

    def tell(self, kind: str, text: str) -> None:
        """Something happened: to the screen's list of events and to the log."""
        self.events.tell(kind, text)

    def snapshot(self) -> Snapshot:
        """The complete picture of this moment."""
        return self._pictures.take()

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
        tasks = {work: asyncio.create_task(self._keep(work), name=work.__qualname__) for work in self._work()}
        self.tell("station", f"station {self.id} started")
        # Needed by the first interval: imported on the loop then, it would hold up pictures and actions.
        await asyncio.to_thread(importlib.import_module, "scipy.special")
        await self._stopping.wait()
        await self._end(tasks)

    def _work(self) -> list[Work]:
        work: list[Work] = [self._feed.serve, self._publish_snapshots, self.recording.run]
        if self.control is not None:
            work += self.control.work()
        if self._scraper is not None:
            work.append(self._scraper.run)
        if self.options.metrics_port:
            work.append(self._metrics.run)
        if self._notifying is not None:
            work.append(self._notifying.run)
        return work

    def _webhook(self) -> Notifying | None:
        options = self.options
        if not options.webhook or options.webhook_from == "off":
            return None
        return Notifying(
            Webhook(read_webhook(options.webhook)),
            self.id,
            lambda: self._picture.alerts if self._picture is not None else [],
            lambda: self.recorder.house.alerts,
            self.tell,
            level=options.webhook_from,
            a_minute=options.webhook_a_minute,
        )

    async def _keep(self, work: Work) -> None:
        """A fault in one part is logged and that part goes on; the others never notice."""
        while True:
            try:
                await work()
            except Exception as error:
                log.exception("%s failed and is taken up again", work.__qualname__)
                self.events.add(time.time(), "station", f"{work.__qualname__}: {type(error).__name__}: {error}")
                await asyncio.sleep(1.0)

    async def _end(self, tasks: dict[Work, asyncio.Task[None]]) -> None:
        if self.control is not None:
            await self.control.demo.end()
            await self.control.rehearsals.end()  # while the feed still answers: it gives the policy back by itself
        await self.recording.stop()
        await self.looker.close()
        await self._feed.drain()
        if self.control is not None:
            for work in self.control.supervising():
                tasks[work].cancel()
            if self._stop_everything:
                await self.control.stop_serving()
            self.control.roster.record_open_outages()
            self.control.texts.close()
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        await asyncio.to_thread(self.recorder.stop)
        state_path(self.sockets.directory, "station").unlink(missing_ok=True)
        self._feed.close()
        if self.control is not None:
            self.control.close()
        self._context.term()

    def _write_state(self) -> None:
        info = StationInfo(
            station=self.id,
            store=self.options.store,
            base_url=self.options.base_url if self._scraper is None else self._scraper.shown,
            foreground=self.options.stop_all_on_signal,
        )
        write_station(self.sockets.directory, info, self.options.log or "")

    async def _publish_snapshots(self) -> None:
        due = time.monotonic()
        while True:
            self._picture = self.snapshot()
            await self._feed.publish(self._picture)
            due = max(due + SNAPSHOT_SECONDS, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
