"""Measures the step times of an engine of ours before it has served anything: requests of our own in growing batches.

Without it nothing could be said of speedup, and nothing decided, until probes had been at every batch size. Clients
have precedence: it breaks off as soon as one is there, and comes back when none was there for a minute.

K between 0 and the longest is left to the fit, which is linear in draft passes and verified tokens: a third arm would
cost the largest batches their place in the time, and could only be had by a change of the policy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from console.feed.messages import CalibrationView, EngineState
from console.station.calibration_clients import Clients
from console.station.calibration_result import calibrated, kept_under, read_calibrated
from console.station.calibration_run import CalibrationRun, Clock, Interrupted, Requests
from console.station.calibration_subject import Subject, drafting_sizes, fingerprint, never
from console.station.calibration_traffic import CalibrationRefused
from console.station.engines import KnownEngine
from console.station.gateway_control import GatewayStats
from console.station.options import OWNED_ENGINE
from console.station.recorder import Recorder, Remember
from engine.frames import Announcement, Frame
from engine.launch import EngineSpec
from engine.policy import PolicyState
from engine.records import ControlRecord, EngineRecord

LOOK_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 60.0
"""Without clients, before it is tried again."""
TRIES: Final = 3
_SHORT_CONTEXT: Final = 2048
"""Tokens that any engine takes, where it doesn't say."""


class Supervised(Protocol):
    """What is asked of the engine's supervisor."""

    state: EngineState
    spec: EngineSpec


class Calibration:
    """On the event loop. Disabled where `seconds` is 0 or no engine is ours (`supervisor` None)."""

    def __init__(
        self,
        seconds: float,
        supervisor: Supervised | None,
        requests: Requests,
        policy: Callable[[], PolicyState],
        gateway: Callable[[], GatewayStats | None],
        recorder: Recorder,
        tell: Callable[[str, str], None],
        clock: Clock | None = None,
    ) -> None:
        """`seconds`: the most that it may take. `gateway`: its counts as last heard."""
        self._seconds = seconds
        self._supervisor = supervisor
        self._requests = requests
        self._policy = policy
        self._recorder = recorder
        self._tell = tell
        self._clock = clock or Clock(time.time, asyncio.sleep)
        self._clients = Clients(lambda: (gateway() or GatewayStats()).active)
        self._announced: EngineRecord | None = None
        self._subject: Subject | None = None
        self._run: CalibrationRun | None = None
        self._view = CalibrationView(engine=OWNED_ENGINE, state="waiting", text="the engine does not serve yet")

    def take(self, known: KnownEngine, message: Frame | Announcement) -> None:
        """What an engine said, as it comes."""
        if known.engine != OWNED_ENGINE or self._supervisor is None:
            return
        self._clients.take(message, self._clock.now())
        self._announced = known.announced()
        if self._subject is not None and isinstance(message, Frame) and message.step is not None:
            self._subject.counts.take(message.step)

    async def run(self) -> None:
        """For ever."""
        while True:
            if self._seconds > 0 and self._supervisor is not None:
                await self._look(self._supervisor)
            await self._clock.sleep(LOOK_SECONDS)

    def view(self) -> CalibrationView | None:
        """None where it is not to be."""
        if self._seconds <= 0 or self._supervisor is None:
            return None
        run = self._run
        if run is None:
            return self._view
        text = f"batch {run.batch} of {run.sizes[-1]}, {run.seconds:.0f} s"
        return CalibrationView(engine=OWNED_ENGINE, state="running", text=text)

    async def _look(self, supervisor: Supervised) -> None:
        await self._meet(supervisor)
        subject = self._subject
        hindrance = self._hindrance(supervisor, subject)
        if hindrance is None and subject is not None:
            await self._try(supervisor, subject)
            hindrance = self._hindrance(supervisor, subject)
        self._view = hindrance or self._view

    async def _meet(self, supervisor: Supervised) -> None:
        """Find out what of the engine that announced itself is known already."""
        record, subject = self._announced, self._subject
        if record is None or (subject is not None and subject.record == record):
            return
        name = await asyncio.to_thread(fingerprint, record, supervisor.spec.threads)
        if subject is not None and subject.fingerprint == name:
            subject.record = record  # another process of the same
            return
        stored = await asyncio.to_thread(self._recorder.kept, kept_under(name))
        self._subject = Subject(record, name, read_calibrated(stored, self._clock.now()))

    def _hindrance(self, supervisor: Supervised, subject: Subject | None) -> CalibrationView | None:
        """Why it is not to begin now."""
        if subject is None or supervisor.state != "serving" or subject.record != self._announced:
            return _view("waiting", "the engine does not serve yet")
        if subject.kept is not None:
            return _view("done", subject.kept.sentence())
        nothing = never(subject.record, self._policy())
        if nothing is not None:
            return _view("skipped", nothing)
        if subject.tries >= TRIES:
            return _view("skipped", f"{subject.last}; probes measure what is missing")
        return self._not_now(subject)

    def _not_now(self, subject: Subject) -> CalibrationView | None:
        if not drafting_sizes(self._policy(), subject.record):
            return _view("waiting", "by the policy nothing is drafted at any batch size")
        now = self._clock.now()
        if self._clients.busy(now):
            return _view("waiting", "waits until no request runs")
        left = [at for at in (self._clients.busy_at, subject.tried_at) if at is not None]
        wait = max(left, default=-IDLE_SECONDS) + IDLE_SECONDS - now
        return _view("waiting", f"waits for {wait:.0f} s more without requests") if wait > 0 else None

    async def _try(self, supervisor: Supervised, subject: Subject) -> None:
        record = subject.record
        sizes = drafting_sizes(self._policy(), record)
        began = self._clock.now()

        def halt() -> str | None:
            if self._clients.busy(self._clock.now()) or self._clients.were_there_since(began):
                return "interrupted by traffic"
            if supervisor.state != "serving" or self._announced != record:
                return "the engine went away"
            if never(record, self._policy()) or not drafting_sizes(self._policy(), record):
                return "interrupted by a change of the policy"
            return None

        run = self._run = CalibrationRun(self._requests, subject.counts, sizes, subject.measured, self._clock, halt)
        try:
            await run.run(self._seconds, record.max_k, record.max_model_len or _SHORT_CONTEXT)
        except (Interrupted, CalibrationRefused) as why:
            self._broken_off(subject, str(why), run.seconds)
        else:
            self._ended(subject, run)
        finally:
            self._run = None

    def _broken_off(self, subject: Subject, why: str, seconds: float) -> None:
        subject.tries += 1
        subject.tried_at = self._clock.now()
        subject.last = why
        known = [str(size) for size, measured in subject.measured.items() if measured.known]
        brought = f"batch {', '.join(known)} measured so far" if known else "no batch size complete yet"
        again = f"tried again after {IDLE_SECONDS:.0f} s without requests" if subject.tries < TRIES else "given up"
        self._tell("engine", f"{OWNED_ENGINE}: calibration broken off after {seconds:.0f} s: {why}; {brought}, {again}")

    def _ended(self, subject: Subject, run: CalibrationRun) -> None:
        now = self._clock.now()
        found = calibrated(subject.fingerprint, now, run.seconds, run.sizes, subject.measured, subject.counts)
        if found is None:
            subject.tries = TRIES
            subject.last = f"no batch size could be measured within {self._seconds:.0f} s"
            self._tell("engine", f"{OWNED_ENGINE} is not calibrated: {subject.last}")
            return
        subject.kept = found
        text = found.sentence()
        numbers = msgspec.to_builtins(found)
        self._recorder.put(Remember(kept_under(subject.fingerprint), msgspec.json.encode(found)))
        self._recorder.put(ControlRecord(now, "station", "calibration", why=text, numbers=numbers))
        self._recorder.house.fit_soon()
        self._tell("engine", f"{OWNED_ENGINE} calibrated in {run.seconds:.0f} s: {text}")


def _view(state: str, text: str) -> CalibrationView:
    return CalibrationView(engine=OWNED_ENGINE, state=state, text=text)  # type: ignore[arg-type]
