"""What each workload's own K has bought in the last hours, as the controller works it out: kept to be shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from console.feed.bucket_detail import MarginalGain
from engine.deciding.marginal import Judged
from store.series import KEPT_SECONDS

EVERY_SECONDS: Final = 30.0
FORGOTTEN: Final = 256
"""Workloads of which anything is kept, at most: the one that was noted longest ago goes first."""


class Marginals:
    """Of the main engine. Its own loop notes and reads."""

    def __init__(self) -> None:
        self._noted: dict[str, deque[MarginalGain]] = {}
        self._at = 0.0

    def due(self, now: float) -> bool:
        """Whether it is time to note them again."""
        return not 0 <= now - self._at < EVERY_SECONDS

    def note(self, now: float, gains: Mapping[str, Judged]) -> None:
        self._at = now
        for name, judged in gains.items():
            held = self._noted.pop(name, None) or deque(maxlen=int(KEPT_SECONDS / EVERY_SECONDS))
            low, high = judged.bounds or (None, None)
            held.append(MarginalGain(ts=now, k=judged.k, gain=judged.gain, low=low, high=high,
                                     sequences=judged.sequences))  # fmt: skip
            self._noted[name] = held
        for name in list(self._noted)[: max(0, len(self._noted) - FORGOTTEN)]:
            del self._noted[name]

    def of(self, workload: str | None) -> list[MarginalGain]:
        """Oldest first."""
        return list(self._noted.get(workload or "", ()))
