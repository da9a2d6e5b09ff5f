"""What the station knows of each engine from what it said: who it is, what it executes, and whether that is what was
configured. Facts only; the process behind an engine is `engine_supervisor`'s."""

from __future__ import annotations

import math
from array import array
from typing import Final, NamedTuple

from engine.frames import COLUMNS, Announcement, Frame, PackedStep
from engine.policy import PolicyState, base_k, standing
from engine.records import LIMITS, EngineRecord, PolicyMode
from engine.schedule import ScheduleError
from store.resolved import resolved_by

LOST_AFTER_SECONDS: Final = 25.0
"""Engines announce themselves every 10 s: one that missed two is lost."""

MISMATCH_STEPS: Final = 20
"""Unexplained steps in a row beyond which executed and configured K differ in earnest."""

_REVERTED_BY_SECONDS: Final = 1.0
"""A scheduler takes an unconfirmed raise back so long after its deadline at most: it looks twice a second."""

_K_ASKED: Final = COLUMNS.index("k_asked")
_LIMIT: Final = COLUMNS.index("limit")
_BASE_TERMS: Final = frozenset({"static", "schedule", "off"})


class Executed(NamedTuple):
    """The K of one step and the policy term that set it."""

    k: int
    limit: str


class KnownEngine:
    """One engine, kept up by its announcements and frames."""

    def __init__(self, engine: str, owned: bool) -> None:
        self.engine = engine
        self.owned = owned
        self.record: EngineRecord | None = None
        self.boot: str | None = None
        self.boots = 0
        self.policy_applied: int | None = None
        self.policy_error: str | None = None
        self.reverted: float | None = None
        """Since when it has taken back an unconfirmed raise by itself, Unix seconds."""
        self.orphaned: float | None = None
        """Since when it leaves out adaptive's own K, having heard of no station, Unix seconds."""
        self.orphaned_heard: float | None = None
        """When it first said so, if it has said nothing else since."""
        self.frames_dropped = 0
        self.heard: float | None = None
        self.step_at: float | None = None
        self.executed: Executed | None = None
        self.mismatch: str | None = None
        self.mismatch_steps = 0
        self.mismatch_since: float | None = None
        self._running: int | None = None

    def lost(self, now: float) -> bool:
        return self.heard is not None and now - self.heard > LOST_AFTER_SECONDS

    def announced(self) -> EngineRecord | None:
        """What its present process said of itself; None where it has not spoken yet."""
        record = self.record
        return record if record is not None and record.boot in (None, self.boot) else None

    def meet(self, boot: str) -> float | None:
        """A message of `boot` comes. When the process before it was another: when that was last heard of."""
        if boot == self.boot:
            return None
        last_heard = self.heard if self.boot is not None else None
        self.boot, self.boots = boot, self.boots + 1
        self.executed, self.mismatch, self.mismatch_steps, self.policy_applied = None, None, 0, None
        self.reverted, self.orphaned, self.orphaned_heard, self._running = None, None, None, None
        return last_heard

    def died_unseen(self, last_heard: float | None) -> None:
        """It ran before this station began and is gone; `last_heard` by what is stored, None when nothing is."""
        if last_heard is not None:
            self.boot, self.boots, self.heard = "", 0, last_heard

    def take_announcement(self, message: Announcement, now: float) -> None:
        self.record = message.record
        self._applied(message.policy)
        self.policy_error = message.policy_error
        self.reverted, self.orphaned = message.reverted, message.orphaned
        self.orphaned_heard = None if message.orphaned is None else self.orphaned_heard or now
        self.frames_dropped = message.frames_dropped
        self.heard = now

    def take_frame(self, frame: Frame, state: PolicyState | None, now: float) -> None:
        """`state`: the policy that the frame is stamped with, None when this station never knew it."""
        self.heard = now
        step = frame.step
        if step is None:
            return
        self._applied(step.policy)
        self.step_at = step.ts
        self.executed = executed(step, self.record)
        self._judge(step, state)
        self._running = step.running

    def resolved(self, configured: PolicyMode) -> PolicyMode | None:
        """What the engine does with the policy that it was sent, with the reason where that is another one; None while
        it has not said who it is."""
        return None if self.record is None else resolved_by(self.record, configured)

    def _applied(self, version: int) -> None:
        """Versions only rise within a boot: frames that waited for a station come after its hello was answered."""
        self.policy_applied = max(version, self.policy_applied or 0)

    def _judge(self, step: PackedStep, state: PolicyState | None) -> None:
        if state is None or self.record is None or self.executed is None:
            return
        # A raise that nobody confirmed is taken back by the engine, under the same version.
        looked = math.inf if self.reverted is not None else step.ts - _REVERTED_BY_SECONDS
        state = standing(state, looked, 0.0).state
        try:
            expected = base_k(state.policy, self._batch(step), self.record.max_k)
        except ScheduleError:
            return  # no scheduler executes it: it is told as refused
        if self.executed.k == expected:
            self.mismatch, self.mismatch_steps, self.mismatch_since = None, 0, None
            return
        reason = explanation(self.executed, state, self.record)
        if reason is not None:
            self.mismatch, self.mismatch_steps, self.mismatch_since = reason, 0, None
            return
        self.mismatch_steps += 1
        if self.mismatch_since is None:
            self.mismatch_since = step.ts
        dropped = f" (the engine says: {self.record.resolved.reason})" if self.record.resolved.reason else ""
        self.mismatch = f"executes K {self.executed.k} where {expected} is configured, unexplained{dropped}"

    def _batch(self, step: PackedStep) -> int:
        """Running sequences that the executed K was decided for: where the batch K can't move, those of the step
        before."""
        return self._running if _fixed(self.record) and self._running is not None else step.running


def _fixed(record: EngineRecord | None) -> bool:
    return record is not None and (record.batch_k == "fixed" or record.data_parallel_size > 1)


def executed(step: PackedStep, record: EngineRecord | None) -> Executed:
    """Executed K: the batch K, and where that can't move the largest K asked for a sequence (design §7)."""
    if not _fixed(record):
        return Executed(step.k_draft, step.limit_draft)
    if step.count == 0:
        return Executed(0, step.limit_draft)
    columns = array("i", step.columns)
    asked = columns[_K_ASKED * step.count : (_K_ASKED + 1) * step.count]
    limits = columns[_LIMIT * step.count : (_LIMIT + 1) * step.count]
    k, code = max(zip(asked, limits, strict=True))
    return Executed(k, LIMITS[code] if 0 <= code < len(LIMITS) else step.limit_draft)


def explanation(found: Executed, state: PolicyState, record: EngineRecord) -> str | None:
    """Why an executed K other than the configured one is right, None when nothing explains it."""
    if found.limit in _BASE_TERMS:
        return None
    reasons = {
        "hint": "all running requests disable speculation",
        "lane": "all running requests are in the vanilla lane",
        "operator": "the operator's fallback is on",
        "fallback": "automatic fallback",
        "probe": "a probe is under way",
        "cap": f"the operator's cap is {state.cap}",
        "adaptive": "adaptive lowered it",
        "max": f"the engine was started with at most {record.max_k} draft tokens",
    }
    return reasons.get(found.limit)
