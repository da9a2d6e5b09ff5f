"""How each engine ran lately, in windows of five minutes: what a change of load or of draft length is told from."""

from __future__ import annotations

from typing import Final

import msgspec

from store.judge.alerts import Cause
from store.judge.inputs import EngineLoad
from store.judge.settings import WINDOWS, JudgeSettings

_KEPT: Final = 2 * int(WINDOWS[-1] // WINDOWS[0])
"""Twelve hours."""


class Load(msgspec.Struct):
    """Means over the cells of a stretch of time."""

    end: float
    running: float
    executed_k: float


class LoadsMemory(msgspec.Struct):
    present: dict[str, list[float]] = {}
    """Engine → cells of the present window, Σ running, Σ executed K."""
    recent: dict[str, list[Load]] = {}


class Loads:
    def __init__(self, memory: LoadsMemory, settings: JudgeSettings) -> None:
        self.memory = memory
        self._settings = settings

    def add(self, engines: tuple[EngineLoad, ...]) -> None:
        for one in engines:
            sums = self.memory.present.setdefault(one.engine, [0.0, 0.0, 0.0])
            sums[0] += 1
            sums[1] += one.running
            sums[2] += one.executed_k

    def tick(self, ts: float) -> None:
        for engine, (cells, running, executed_k) in self.memory.present.items():
            recent = self.memory.recent.setdefault(engine, [])
            recent.append(Load(ts, running / cells, executed_k / cells))
            del recent[:-_KEPT]
        self.memory.present = {}

    def between(self, engine: str, start: float, end: float) -> Load | None:
        """The mean of the windows that ended in (start, end]."""
        windows = [one for one in self.memory.recent.get(engine, ()) if start < one.end <= end]
        if not windows:
            return None
        many = len(windows)
        return Load(end, sum(one.running for one in windows) / many, sum(one.executed_k for one in windows) / many)

    def causes(self, before: Load | None, after: Load | None) -> list[Cause]:
        """Names a load or a draft length that is not what it was."""
        if before is None or after is None:
            return []
        causes = []
        low, high = sorted((before.running, after.running))
        if high >= self._settings.load_change * max(low, 1.0):
            text = f"load: {before.running:.1f} sequences running before, {after.running:.1f} since"
            causes.append(Cause("load", text, after.end))
        if abs(after.executed_k - before.executed_k) >= self._settings.draft_length_change:
            text = f"executed K: {before.executed_k:.1f} before, {after.executed_k:.1f} since"
            causes.append(Cause("draft_length", text, after.end))
        return causes
