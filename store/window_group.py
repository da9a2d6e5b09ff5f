"""The windows of one bucket, or of the pool of all: counts and load over each span, recent cells, which is shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from store.bucket_window import BucketWindow
from store.counts import Tally, accumulate
from store.figures import Figures
from store.grouping import CellChange
from store.levels import CELL_SECONDS
from store.load import Runner, SlidingLoad
from store.series import Ring
from store.sliding import SlidingTally

ENOUGH_SEQUENCES: Final = 30
"""The smallest window with this many sequences is shown, …"""
KEEP_SEQUENCES: Final = 20
"""… and kept until it falls under this many."""

_MAX_UNSETTLED: Final = 6


class Shown(NamedTuple):
    """A bucket as one of its windows showed it last."""

    view: BucketWindow
    at: float
    """The moment, Unix seconds."""
    changes: int
    """`Group.changes` then."""


class Group:
    """One bucket, or the pool of all: its windows and its ring."""

    def __init__(self, spans: tuple[tuple[float, int, str], ...]) -> None:
        self.windows = [SlidingTally(seconds, cell) for seconds, cell, _ in spans]
        self.loads = [SlidingLoad(seconds, cell) for seconds, cell, _ in spans]
        self.ring = Ring()
        self._unsettled: dict[int, Tally] = {}
        self._unsettled_load: dict[tuple[Runner, int], dict[int, list[int]]] = {}
        self.last_seen = 0.0
        self.place: int | None = None
        """Number of the window that is shown where the operator fixed none."""
        self.cached: dict[int, Figures] = {}
        """By window, as long as its counts are the same."""
        self.shown: dict[int, Shown] = {}
        """By window: one that the operator fixed and the one that is chosen may be the same."""
        self.changes = 0
        """Grows with whatever comes."""

    def add(self, runner: Runner, change: CellChange) -> None:
        accumulate(self._unsettled_load.setdefault((runner, change.cell), {}), change.load)
        self._unsettled.setdefault(change.cell, Tally()).add(change.change)
        if len(self._unsettled) > _MAX_UNSETTLED:
            self.settle()
        self.ring.add(change.cell, change.sums)
        self.last_seen = max(self.last_seen, change.last_seen)
        self.changes += 1

    def last_shown(self, fixed: int | None) -> Shown | None:
        """As the window number `fixed` showed it last, or the chosen one where that is None."""
        place = self.place if fixed is None else fixed
        return None if place is None else self.shown.get(place)

    def is_due(self, now: float, fixed: int | None) -> bool:
        """Whether a picture of this moment would be another: rows came, or a cell may have left a window."""
        last = self.last_shown(fixed)
        return last is None or last.changes != self.changes or not _fresh(last, now)

    def show(self, place: int, view: BucketWindow, now: float) -> None:
        self.shown[place] = Shown(view, now, self.changes)

    def forget(self, place: int) -> None:
        """Nobody kept up what this window showed; what is chosen is kept up always."""
        if place != self.place:
            self.shown.pop(place, None)

    def settle(self) -> None:
        """Let the windows have what has come: rows come far more often than anybody looks."""
        for cell, tally in self._unsettled.items():
            for window in self.windows:
                window.add(cell * CELL_SECONDS, tally)
            self.cached.clear()
        for (runner, cell), sums in self._unsettled_load.items():
            for load in self.loads:
                load.add(runner, cell * CELL_SECONDS, sums)
        self._unsettled.clear()
        self._unsettled_load.clear()

    def bring_to(self, now: float) -> None:
        self.settle()
        for place, window in enumerate(self.windows):
            if window.expire(now):
                self.cached.pop(place, None)
        for load in self.loads:
            load.expire(now)

    def choose(self, now: float) -> int:
        """The window to show: the smallest with enough sequences, kept until it has too few.

        Where none has enough, the smallest that holds as many as the longest: a longer one would know no more.
        """
        enough = min(ENOUGH_SEQUENCES, self.windows[-1].sequences)
        best = next(place for place, window in enumerate(self.windows) if window.sequences >= enough)
        kept = self.place
        if kept is None or best < kept or self.windows[kept].sequences < KEEP_SEQUENCES:
            if best != kept and best in self.shown and not _fresh(self.shown[best], now):
                del self.shown[best]
            self.place = kept = best
        return kept


def _fresh(shown: Shown, now: float) -> bool:
    return 0 <= now - shown.at < CELL_SECONDS
