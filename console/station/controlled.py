"""One engine under the controller: what is observed of its present process, and what the controller remembers."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from console.station.step_intake import StepIntake
from engine.deciding.decide import Outcome, decide
from engine.deciding.estimates import Estimates
from engine.deciding.marginal import Judged
from engine.deciding.memory import MEMORY_VERSION, Memory
from engine.deciding.observer import Observer
from engine.deciding.present import present_gains
from engine.deciding.settings import DecidingSettings
from engine.frames import Announcement, Frame
from engine.policy import PolicyState
from engine.records import EngineRecord
from engine.step_time.model import StepModel
from store.buckets import model_version

log = logging.getLogger(__name__)


class Controlled:
    """Fed with what the engine says, asked for an outcome once a second."""

    def __init__(self, settings: DecidingSettings, memory: Memory, ignored: Iterable[str] = ()) -> None:
        self.memory = memory
        self.record: EngineRecord | None = None
        self._settings = settings
        self._ignored = tuple(ignored)
        self._observer: Observer | None = None
        self._estimates: Estimates | None = None
        self.intake = StepIntake(self._ignored)

    def announced(self, message: Announcement) -> None:
        record = message.record
        if self.record is None or record.boot != self.record.boot or model_version(record) != self.version:
            self._begin(record)
        self.intake.introduce(message.sequences)
        self.intake.serving_only(message.sequences)

    def take(self, frame: Frame) -> None:
        """A frame of a process that has not announced itself yet is left out: who serves there isn't known."""
        if self.record is not None and frame.boot == self.record.boot:
            self.intake.take(frame)

    @property
    def version(self) -> str:
        return "" if self.record is None else model_version(self.record)

    def look(self, now: float, policy: PolicyState, model: StepModel | None) -> Outcome | None:
        """One look; None where there is nothing to decide about yet."""
        if self._observer is None:
            return None
        observed = self.intake.drain()
        if observed is not None:
            self._observer.add(*observed)
        self._estimates = self._observer.estimates(now, policy, model)
        outcome = decide(self._settings, self.memory, self._estimates)
        self.memory = outcome.memory
        return outcome

    def gains(self) -> dict[str, Judged]:
        """What each workload's drafts bought at the last look."""
        if self._estimates is None:
            return {}
        return present_gains(self._settings, self.memory, self._estimates)

    def _begin(self, record: EngineRecord) -> None:
        self.record = record
        self.intake = StepIntake(self._ignored)
        fixed = record.batch_k == "fixed" or record.data_parallel_size > 1
        self._observer = self._estimates = None
        if record.max_k:
            self._observer = Observer(record.boot or "", self.version, record.max_k, fixed, self._settings)


def read_memory(stored: bytes | None, seed: int) -> Memory:
    """What an earlier station remembered; a fresh memory where there is nothing to be read."""
    if stored is None:
        return Memory(seed=seed)
    try:
        memory = msgspec.json.decode(stored, type=Memory)
    except msgspec.DecodeError as error:
        log.warning("what the controller remembered can't be read and is begun anew: %s", error)
        return Memory(seed=seed)
    return memory if memory.v == MEMORY_VERSION else Memory(seed=seed)
