"""What a station has that does not only observe: its engine and gateway, the engines that report to it, the policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import zmq.asyncio

from console.statefile import state_path
from console.station.engine_supervisor import EngineSupervisor
from console.station.gateway_supervisor import GatewaySupervisor
from console.station.options import OWNED_ENGINE, StationOptions
from console.station.policy import PolicyBook, PolicyPublisher
from console.station.recorder import Recorder
from console.station.roster import Roster
from console.station.telemetry import TelemetryReceiver
from engine.policy import PolicyState
from engine.records import PolicyMode
from engine.sockets import Sockets

Work = Callable[[], Coroutine[Any, Any, None]]

PUBLISH_SECONDS: Final = 1.0


class Control:
    """`supervisor`: of the engine that is ours; None where engines are only listened to."""

    def __init__(
        self,
        station: str,
        options: StationOptions,
        sockets: Sockets,
        context: zmq.asyncio.Context,
        recorder: Recorder,
        tell: Callable[[str, str], None],
        logs: Path,
    ) -> None:
        self.supervisor: EngineSupervisor | None = None
        if options.engine:
            self.supervisor = EngineSupervisor(options, sockets, logs / f"engine-{OWNED_ENGINE}.log", tell)
        self.gateway = GatewaySupervisor(options, sockets, context, logs / "gateway.log", tell)
        adopted = self.supervisor is not None and self.supervisor.adopt()
        self.book = PolicyBook(
            state_path(sockets.directory, "policy"),
            PolicyMode(mode="static", k=options.max_k),
            owned=None if self.supervisor is None else OWNED_ENGINE,
            resume=adopted or self.supervisor is None,
            floor=recorder.highest_policy(),
        )
        self.roster = Roster(self.supervisor, self.book, recorder, tell)
        if self.supervisor is not None and not adopted and self.supervisor.was_left_behind():
            # It died while no station looked: what lies between its last record and its successor is an outage.
            self.roster.engines[OWNED_ENGINE].died_unseen(recorder.last_heard(OWNED_ENGINE))
            self.supervisor.last_broken = "engine and station were down"
        self.publisher = PolicyPublisher(context, sockets, station, self.book)
        self._receiver = TelemetryReceiver(context, sockets, self.roster.take, self.roster.take_broken)

    def shown_policy(self) -> PolicyState:
        """That of our engine, else of the first one there is."""
        return self.book.for_engine(
            OWNED_ENGINE if self.supervisor is not None else next(iter(self.roster.engines), "")
        )

    def work(self) -> list[Work]:
        """What has to run for ever."""
        return [self._receiver.receive, self.publisher.watch_subscriptions, self._publish_policy, *self.supervising()]

    def supervising(self) -> list[Work]:
        """The part of it that starts processes anew."""
        return [self.gateway.run] if self.supervisor is None else [self.gateway.run, self.supervisor.run]

    async def stop_serving(self) -> None:
        """End gateway and engine."""
        await self.gateway.stop()  # first: it lets running answers finish while the engine still makes them
        if self.supervisor is not None:
            await self.supervisor.stop()

    def close(self) -> None:
        self.publisher.close()
        self._receiver.close()

    async def _publish_policy(self) -> None:
        while True:
            await self.publisher.send_all()
            await asyncio.sleep(PUBLISH_SECONDS)
