"""The window that the operator fixed for the bucket table, and what a picture looks like through it. Pure state.

Alerts and states stay what the station's judge says: it has windows of its own.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from console.app.drawing import numbers
from console.app.picture import Picture
from console.feed.fixed_window import FixedFigures
from console.feed.messages import BucketView, Snapshot
from store.window_spans import SPANS

STALE_SECONDS: Final = 5.0
"""Figures older than this are no longer shown for a station's present ones."""
BESIDE_SECONDS: Final = 2.0
"""Figures of a moment that is further from the one that is shown say which it is."""


class TableWindow:
    """Which window is fixed, and the last answer for it."""

    def __init__(self) -> None:
        self._place = -1
        self._answer: FixedFigures | None = None

    @property
    def seconds(self) -> float | None:
        """None: each bucket chooses its own."""
        return None if self._place < 0 else SPANS[self._place][0]

    @property
    def label(self) -> str:
        return "" if self._place < 0 else SPANS[self._place][2]

    def change(self, step: int) -> bool:
        """To the next longer or shorter one, shorter than all being none; False where there is no other."""
        place = self._place + step
        if not -1 <= place < len(SPANS):
            return False
        self._place, self._answer = place, None
        return True

    def drop(self) -> None:
        self._place, self._answer = -1, None

    def take(self, answer: FixedFigures) -> bool:
        """Keep an answer; False where another window is wanted by now."""
        wanted = answer.window == self.seconds
        if wanted:
            self._answer = answer
        return wanted

    def through(self, picture: Picture) -> Snapshot | None:
        """The snapshot with the figures of the fixed window, as far as there are any that can be shown."""
        snapshot, answer = picture.snapshot, self._shown(picture)
        if snapshot is None or answer is None:
            return snapshot
        return replace(snapshot, buckets=answer.buckets, total=answer.total)

    def named(self, bucket: BucketView) -> BucketView:
        """Where its window is named alone: one that was fixed says so."""
        if not self.label or bucket.window_label != self.label:
            return bucket
        return replace(bucket, window_label=f"{self.label} fixed")

    def words(self, picture: Picture, chosen: str) -> str:
        """What the title says of the window. `chosen`: what it is where none is fixed."""
        if self.seconds is None:
            return f"window {chosen}"
        answer, snapshot = self._shown(picture), picture.snapshot
        if answer is None or snapshot is None:
            why = "no station" if picture.link.state == "lost" else "asking" if self._answer is None else "no answer"
            return f"window {chosen} ({self.label} fixed: {why})"
        beside = abs(answer.ts - snapshot.ts) > BESIDE_SECONDS
        return f"window {self.label} (fixed{f', as of {numbers.clock(answer.ts)}' if beside else ''})"

    def _shown(self, picture: Picture) -> FixedFigures | None:
        answer, snapshot = self._answer, picture.snapshot
        if answer is None or snapshot is None or not answer.buckets or picture.link.state == "lost":
            return None
        if not picture.replaying and abs(snapshot.ts - answer.ts) > STALE_SECONDS:
            return None
        return answer
