"""Which engines there are, by what they say themselves: announcements and frames, outages between their processes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from console.station.engine_supervisor import EngineSupervisor
from console.station.engines import KnownEngine
from console.station.policy import PolicyBook, advised
from console.station.recorder import Broken, Received, Recorder
from engine.frames import Announcement, Frame
from engine.records import GapRecord

log = logging.getLogger(__name__)

FORGET_AFTER_SECONDS: Final = 600.0

Listener = Callable[[KnownEngine, Frame | Announcement], None]


class Roster:
    """All on the event loop. `supervisors`: of the engines that are ours, by id."""

    def __init__(
        self,
        supervisors: Mapping[str, EngineSupervisor],
        book: PolicyBook,
        recorder: Recorder,
        tell: Callable[[str, str], None],
    ) -> None:
        self.engines: dict[str, KnownEngine] = {engine: KnownEngine(engine, owned=True) for engine in supervisors}
        self._supervisors = supervisors
        self._book = book
        self._recorder = recorder
        self._tell = tell
        self.listeners: list[Listener] = []
        """Hear every message of every engine, after it was taken in here."""

    def supervisor_of(self, known: KnownEngine) -> EngineSupervisor | None:
        return self._supervisors.get(known.engine)

    def take(self, message: Frame | Announcement) -> None:
        """What an engine said: for the picture, and to be recorded."""
        now = time.time()
        if isinstance(message, Frame):
            known = self._known(message.engine)
            self._meet(known, message.boot, now)
            version = message.step.policy if message.step is not None else 0
            known.take_frame(message, self._book.at(version, message.engine), now)
        else:
            known = self._known(message.record.engine)
            self._meet(known, message.boot, now)
            self._take_announcement(known, message, now)
        self._recorder.put(Received(message, now))
        for listener in self.listeners:
            listener(known, message)

    def take_broken(self, reason: str) -> None:
        self._recorder.put(Broken(reason))

    def forget_gone(self, now: float) -> None:
        """An engine of somebody else that was ended is no alarm for ever."""
        for name, known in list(self.engines.items()):
            if not known.owned and known.heard is not None and now - known.heard > FORGET_AFTER_SECONDS:
                del self.engines[name]
                self._tell("engine", f"{name} was not heard of for {FORGET_AFTER_SECONDS / 60:.0f} min: forgotten")

    def record_open_outages(self) -> None:
        """An engine that is down while the station ends: what is missing until now is a gap too."""
        for engine, supervisor in self._supervisors.items():
            heard = self.engines[engine].heard
            if heard is not None and supervisor.state in ("restarting", "failed"):
                self._record_outage(engine, heard, time.time(), supervisor.last_broken or "engine down")

    def _meet(self, known: KnownEngine, boot: str, now: float) -> None:
        """Another process under the same name: what lies between the two is an outage."""
        last_heard = known.meet(boot)
        if last_heard is None:
            return
        supervisor = self.supervisor_of(known)
        why = supervisor.last_broken if supervisor is not None else None
        self._record_outage(known.engine, last_heard, now, why or "the engine was started anew")

    def _record_outage(self, engine: str, since: float, until: float, reason: str) -> None:
        self._recorder.put(GapRecord(engine=engine, ts=until, frames_lost=0, since=since, reason=reason))

    def _take_announcement(self, known: KnownEngine, message: Announcement, now: float) -> None:
        record = message.record
        if known.record is None or known.record.boot != record.boot:
            version = f"{record.target} · {record.method} · vLLM {record.vllm}"
            self._tell("engine", f"{record.engine} announced itself: {version}")
        known.take_announcement(message, now)
        if not known.owned and not self._book.chosen:
            self._book.leave_own(record.engine, advised(record))
        if self._book.raise_above(message.policy):
            log.info("%s executes policy %d of another station: going on above it", record.engine, message.policy)

    def _known(self, engine: str) -> KnownEngine:
        known = self.engines.get(engine)
        if known is None:
            # Data-parallel ranks of an engine of ours: e0, e0-1, …
            owned = engine.rpartition("-")[0] in self._supervisors
            known = self.engines[engine] = KnownEngine(engine, owned=owned)
        return known
