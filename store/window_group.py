"""The windows of one bucket, or of the pool of all: counts and load over each span, recent cells, which is shown."""

from __future__ import annotations

from typing import Final

from store.bucket_window import BucketWindow
from store.counts import Tally, accumulate
from store.figures import Figures
from store.grouping import CellChange
from store.levels import CELL_SECONDS
from store.load import Runner, SlidingLoad
from store.series import Ring
from store.sliding import SlidingTally

SPANS: Final[tuple[tuple[float, int, str], ...]] = ((300.0, 10, "5 min"), (3600.0, 60, "1 h"), (21600.0, 300, "6 h"))
"""Windows: seconds, seconds of a cell, label."""
ENOUGH_SEQUENCES: Final = 30
"""The smallest window with this many sequences is shown, …"""
KEEP_SEQUENCES: Final = 20
"""… and kept until it falls under this many."""

_MAX_UNSETTLED: Final = 6


class Group:
    """One bucket, or the pool of all: its windows and its ring."""

    def __init__(self, spans: tuple[tuple[float, int, str], ...]) -> None:
        self.windows = [SlidingTally(seconds, cell) for seconds, cell, _ in spans]
        self.loads = [SlidingLoad(seconds, cell) for seconds, cell, _ in spans]
        self.ring = Ring()
        self._unsettled: dict[int, Tally] = {}
        self._unsettled_load: dict[tuple[Runner, int], dict[int, list[int]]] = {}
        self.last_seen = 0.0
        self.shown: int | None = None
        self.cached: tuple[int, Figures] | None = None
        self.view: BucketWindow | None = None
        """As it was shown last, …"""
        self.viewed_at = 0.0
        """… at this moment, …"""
        self.changed = False
        """… and whether anything came since."""

    def add(self, runner: Runner, change: CellChange) -> None:
        accumulate(self._unsettled_load.setdefault((runner, change.cell), {}), change.load)
        self._unsettled.setdefault(change.cell, Tally()).add(change.change)
        if len(self._unsettled) > _MAX_UNSETTLED:
            self.settle()
        self.ring.add(change.cell, change.sums)
        self.last_seen = max(self.last_seen, change.last_seen)
        self.changed = True

    def is_due(self, now: float) -> bool:
        """Whether a picture of this moment would be another: rows came, or a cell may have left a window."""
        return self.view is None or self.changed or not 0 <= now - self.viewed_at < CELL_SECONDS

    def settle(self) -> None:
        """Let the windows have what has come: rows come far more often than anybody looks."""
        for cell, tally in self._unsettled.items():
            for window in self.windows:
                window.add(cell * CELL_SECONDS, tally)
            self.cached = None
        for (runner, cell), sums in self._unsettled_load.items():
            for load in self.loads:
                load.add(runner, cell * CELL_SECONDS, sums)
        self._unsettled.clear()
        self._unsettled_load.clear()

    def bring_to(self, now: float) -> None:
        self.settle()
        for window in self.windows:
            if window.expire(now):
                self.cached = None
        for load in self.loads:
            load.expire(now)

    def choose(self) -> int:
        """The window to show: the smallest with enough sequences, kept until it has too few.

        Where none has enough, the smallest that holds as many as the longest: a longer one would know no more.
        """
        enough = min(ENOUGH_SEQUENCES, self.windows[-1].sequences)
        best = next(place for place, window in enumerate(self.windows) if window.sequences >= enough)
        kept = self.shown
        if kept is None or best < kept or self.windows[kept].sequences < KEEP_SEQUENCES:
            self.shown = kept = best
        return kept
