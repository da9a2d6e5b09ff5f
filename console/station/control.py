"""What a station has that does not only observe: its engine and gateway, the engines that report to it, the policy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq.asyncio

from console.statefile import state_path
from console.station import demo_acts
from console.station.calibration import Calibration
from console.station.calibration_traffic import CalibrationRequests
from console.station.confirming import Confirming
from console.station.deciding import Deciding, Hands
from console.station.deciding_settings import deciding_settings
from console.station.demo_traffic import DemoTraffic
from console.station.drills import Drills
from console.station.gateway_supervisor import GatewaySupervisor
from console.station.hardware_words import HardwareWords
from console.station.lanes import LANES, LaneKeeper, read_lanes
from console.station.maps import Maps
from console.station.options import OWNED_ENGINE, VANILLA_ENGINE, StationOptions
from console.station.own_engines import OwnEngines
from console.station.policy import PolicyBook, PolicyPublisher, unchosen
from console.station.policy_changes import PolicyChanges
from console.station.recorder import Recorder, Remember
from console.station.rehearsal_acts import hindrance
from console.station.rehearsals import Rehearsals
from console.station.roster import Roster
from console.station.step_tail import StepTail
from console.station.telemetry import TelemetryReceiver
from console.station.text_recording import TextRecording
from engine.policy import PolicyState
from engine.records import BEGIN_ACTION, ControlRecord, EngineRecord, PolicyMode
from engine.sockets import Sockets

Work = Callable[[], Coroutine[Any, Any, None]]

PUBLISH_SECONDS: Final = 1.0


class Control:
    """`supervisor`: of the engine that takes the policy here; None where engines are only listened to. `own` has all
    engines that are ours."""

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
        def remember(name: str, value: bytes) -> None:
            recorder.put(Remember(name, value))

        self.own = OwnEngines(options, sockets, logs, tell)
        self.supervisor = self.own.main
        self.gateway = GatewaySupervisor(
            options, sockets, context, logs / "gateway.log", tell, vanilla_upstream=self.own.vanilla_http
        )
        adopted = self.own.adopt()
        self.book = PolicyBook(
            state_path(sockets.directory, "policy"),
            options.policy if options.engine else unchosen(options.policy),
            owned=None if self.supervisor is None else OWNED_ENGINE,
            resume=OWNED_ENGINE in adopted or self.supervisor is None,
            floor=recorder.highest_policy(),
            fixed={VANILLA_ENGINE: PolicyMode(mode="off")} if options.vanilla_engine else None,
            workloads=read_lanes(recorder.kept(LANES)),
        )
        self.roster = Roster(self.own.supervisors, self.book, recorder, tell)
        for engine, supervisor in self.own.supervisors.items():
            if engine not in adopted and supervisor.was_left_behind():
                # It died while no station looked: what lies between its last record and its successor is an outage.
                self.roster.engines[engine].died_unseen(recorder.last_heard(engine))
                supervisor.last_broken = "engine and station were down"
        self.publisher = PolicyPublisher(context, sockets, station, self.book)
        self.changes = PolicyChanges(self.book, self.publisher, recorder.put, tell)
        if self.supervisor is not None:
            recorder.put(_beginning(self.book.state))
        self.steps = StepTail()
        self.drills = Drills(recorder)
        self.confirming = Confirming(self.changes)
        self.deciding = Deciding(
            Hands(
                self.changes,
                self.publisher.send,
                recorder.put,
                remember,
                recorder.kept,
            ),
            self.book.for_engine,
            self.main_engine,
            lambda: recorder.house.models,
            deciding_settings(file=options.deciding),
        )
        self.calibration = Calibration(
            options.calibrate,
            self.supervisor,
            CalibrationRequests(sockets.engine_http),
            self.shown_policy,
            lambda: self.gateway.stats,
            recorder,
            tell,
        )
        self.own.calibrating = self._calibration_state
        self.maps = Maps(recorder, HardwareWords(self._threads_of))
        self.rehearsals = Rehearsals(
            logs,
            state_path(sockets.directory, "rehearsal"),
            tell,
            self._rehearsal_hindrance,
            command=options.rehearse_command,
            api_key=options.api_key,
        )
        self.demo = DemoTraffic(
            options.base_url, sockets.directory, logs, tell, self._demo_hindrance, api_key=options.api_key
        )
        self.roster.listeners += [
            self.steps.take, self.confirming.take, self.deciding.take, self.calibration.take, self.maps.take,
        ]  # fmt: skip
        self._receiver = TelemetryReceiver(context, sockets, self.roster.take, self.roster.take_broken)
        self.texts = TextRecording(self.gateway.texts, recorder.put, tell)
        self.lanes = LaneKeeper(lambda: self.book.state, self.gateway, remember)
        self.changes.listeners.append(self.lanes.changed)

    def _calibration_state(self) -> str | None:
        view = self.calibration.view()
        return None if view is None else view.state

    def main_engine(self) -> str:
        """Our engine, else the first one there is; empty for none."""
        return OWNED_ENGINE if self.supervisor is not None else next(iter(self.roster.engines), "")

    def main_record(self) -> EngineRecord | None:
        """What our engine, else the first one, said of itself."""
        known = self.roster.engines.get(self.main_engine())
        return None if known is None else known.record

    def serving_record(self) -> EngineRecord | None:
        """The same while that engine serves; None while none does."""
        known = self.roster.engines.get(self.main_engine())
        if known is None:
            return None
        supervisor = self.roster.supervisor_of(known)
        serves = not known.lost(time.time()) if supervisor is None else supervisor.state == "serving"
        return known.announced() if serves else None

    def _threads_of(self, engine: str) -> int | None:
        supervisor = self.own.supervisors.get(engine)
        return None if supervisor is None else supervisor.spec.threads

    def _rehearsal_hindrance(self) -> str | None:
        if self.demo.goes_on():
            return "the demo's traffic goes on and would spoil it: d on the Live screen ends it"
        ours = None if self.supervisor is None else self.supervisor.state
        return hindrance(ours, self.serving_record(), self.calibration.view(), self.confirming.view())

    def _demo_hindrance(self) -> str | None:
        ours = None if self.supervisor is None else self.supervisor.state
        return demo_acts.hindrance(ours, self.gateway.view(), self.rehearsals.view())

    def shown_policy(self) -> PolicyState:
        return self.book.for_engine(self.main_engine())

    def work(self) -> list[Work]:
        """What has to run for ever."""
        return [
            self._receiver.receive, self.publisher.watch_subscriptions, self._publish_policy, self.confirming.run,
            self.deciding.run, self.calibration.run, self.rehearsals.run, self.demo.run, *self.supervising(),
        ]  # fmt: skip

    def supervising(self) -> list[Work]:
        """The part of it that starts processes anew."""
        return [self.gateway.run, *(engine.run for engine in self.own.supervisors.values())]

    async def stop_serving(self) -> None:
        """End gateway and engines."""
        await self.gateway.stop()  # first: it lets running answers finish while the engine still makes them
        await self.own.stop()

    def close(self) -> None:
        self.publisher.close()
        self._receiver.close()

    async def _publish_policy(self) -> None:
        while True:
            await self.publisher.send_all()
            await asyncio.sleep(PUBLISH_SECONDS)


def _beginning(state: PolicyState) -> ControlRecord:
    """With what mode the engine of ours is served from now on: its launch says nothing of it."""
    mode = msgspec.to_builtins(state.policy)
    return ControlRecord(ts=time.time(), actor="station", action=BEGIN_ACTION, after=mode, policy=state.version)
