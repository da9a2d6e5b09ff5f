"""Whether a replay has just passed what its picture shows, at a speed at which a note can be read."""

from __future__ import annotations

from typing import Final

from console.feed.messages import Snapshot

FASTEST: Final = 10.0
"""Seconds of record a second."""
LATE_SECONDS: Final = 2.0
"""How much later than its due a picture may come and still be no seek."""


class Passing:
    """A seek, a jump or the end of a loop passes nothing, nor does a clock that stands still."""

    def __init__(self) -> None:
        self._ts: float | None = None

    def passed(self, snapshot: Snapshot) -> bool:
        """Whether what is new in this picture happened on the way from the one before."""
        before, self._ts = self._ts, snapshot.ts
        view = snapshot.replay
        if view is None or before is None or not view.playing or view.speed is None or view.speed > FASTEST:
            return False
        return 0 < snapshot.ts - before <= view.speed * LATE_SECONDS
