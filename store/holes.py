"""Finds the frames that never arrived: holes in the numbering of each engine's messages.

The first frame of an engine that was running before this station has no expected number, unless the store knows the
last one that an earlier station took: then the hole is that station's outage. Frames number from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.frames import Announcement, Frame
from engine.records import GapRecord
from store.runs import EngineRun

SETTLED_SECONDS: Final = 5.0
"""Announcements travel beside the frames and may overtake them, but not by this much."""


class FrameHoles:
    """Calls `report` with a gap for each hole."""

    def __init__(self, report: Callable[[GapRecord], None]) -> None:
        self._report = report
        self._outage: set[tuple[str, str]] = set()

    def first_contact(self, run: EngineRun, *, restarted: bool, now: float) -> None:
        """`restarted`: an earlier boot of this engine was seen, so this one was watched from its first frame on."""
        if run.last_frame is not None:
            self._outage.add((run.engine, run.boot))
        elif restarted:
            run.last_frame, run.last_ts = 0, now

    def arrived(self, run: EngineRun, frame: Frame, received: float) -> bool:
        """Note a frame. False where it is not newer than the last one."""
        if run.last_frame is not None:
            if frame.frame <= run.last_frame:
                return False
            lost = frame.frame - run.last_frame - 1
            if lost:
                self._hole(run, lost, _start(frame, received))
        self._outage.discard((run.engine, run.boot))
        run.last_frame = frame.frame
        run.last_ts = _end(frame, received)
        return True

    def announced(self, run: EngineRun, announcement: Announcement, received: float) -> None:
        """An announcement says the last number given out: what is still missing of an earlier one's is lost."""
        if run.announced is not None and run.last_frame is not None:
            number, when = run.announced
            if received - when < SETTLED_SECONDS:
                return
            if number > run.last_frame:
                self._hole(run, number - run.last_frame, received)
                run.last_frame, run.last_ts = number, received
        run.announced = (announcement.frame, received)

    def _hole(self, run: EngineRun, lost: int, until: float) -> None:
        outage = (run.engine, run.boot) in self._outage
        reason = "the station was away" if outage else "frames lost on the way"
        since = min(run.last_ts, until) if run.last_ts is not None else None
        self._report(GapRecord(run.engine, until, lost, since, reason))


def _start(frame: Frame, received: float) -> float:
    if frame.step is not None:
        return frame.step.ts - frame.step.duration_ms / 1000
    return _end(frame, received)


def _end(frame: Frame, received: float) -> float:
    """Record time of a frame: of its step, or of what else it carries."""
    if frame.step is not None:
        return frame.step.ts
    times = [arrival.ts for arrival in frame.sequences] + [finish.ts for finish in frame.finishes]
    return max(times, default=received)
