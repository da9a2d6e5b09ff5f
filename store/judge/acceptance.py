"""Judges acceptance: adds cells up into windows of five minutes, an hour and six hours, and has each looked at once.

Short windows see a collapse at once, long ones see a small fall at all: five minutes of thirty sequences can't tell
eight points from chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec
import numpy as np

from store.judge.bucket import BucketMemory, new_bucket
from store.judge.inputs import Bools, Floats, Ints, SequenceCells
from store.judge.pairs import (
    RENUMBERED,
    RESUMED,
    Gathering,
    Pairs,
    collapsed,
    keys_of,
    sequence_of,
    with_sequences,
)
from store.judge.places import Places
from store.judge.scale import Scale, ScaleMemory, Window, empty_scale
from store.judge.settings import WINDOWS
from store.judge.verdict import Verdicts
from store.levels import CELL_SECONDS

NEVER = -np.inf


class AcceptanceMemory(msgspec.Struct):
    key: Ints
    under: Floats
    over: Floats
    """Pairs of the present five minutes."""
    scales: list[ScaleMemory]
    buckets: dict[int, BucketMemory]
    seen: Floats
    """Buckets: end of the last cell with decode rows, Unix seconds."""
    drafted: Floats
    """Buckets: end of the last cell with draft steps that are judged."""
    begun: dict[str, float]
    """Engine → when its windows were last cut, Unix seconds: they begin there, not at a multiple of their length."""

    def sequences(self) -> Ints:
        """Numbers of all sequences that are remembered, ascending."""
        keys = [self.key, *(keys for scale in self.scales for keys in (scale.key, scale.before))]
        return np.unique(sequence_of(np.concatenate(keys)))

    def renumber(self, numbers: Mapping[int, int] | None = None) -> None:
        """Sequences have other numbers now.

        Args:
            numbers: old → new, of those that go on. The others get numbers that no store gives: they must not be taken
                for new ones.
        """
        old = self.sequences()
        new = RENUMBERED | np.arange(len(old), dtype=np.int64)
        for place, number in enumerate(old.tolist()):
            new[place] = (numbers or {}).get(number, new[place])
        memories: list[AcceptanceMemory | ScaleMemory] = [self, *self.scales]
        for memory in memories:
            pairs = collapsed([Pairs(with_sequences(memory.key, old, new), memory.under, memory.over)])
            memory.key, memory.under, memory.over = pairs.key, pairs.under, pairs.over
        for scale in self.scales:
            scale.before = np.sort(with_sequences(scale.before, old, new))


def empty_acceptance() -> AcceptanceMemory:
    nothing, none = np.empty(0, dtype=np.int64), np.empty((0, 1))
    return AcceptanceMemory(nothing, none, none, [empty_scale() for _ in WINDOWS], {}, np.empty(0), np.empty(0), {})


Closed = Callable[[int, float, Ints, Floats], None]
"""Scale, end, buckets, moments (buckets × columns × MOMENTS) of windows that have just ended."""


class AcceptanceJudge:
    """Args:
    memory: changed in place.
    arrived: told of each new bucket and the time of its first cell, before anything else is known of it.
    closed: told of all windows of a scale together.
    """

    def __init__(
        self,
        memory: AcceptanceMemory,
        places: Places,
        verdicts: Verdicts,
        arrived: Callable[[int, float], None],
        closed: Closed,
    ) -> None:
        self.memory = memory
        self._places = places
        self._verdicts = verdicts
        self._arrived = arrived
        self._closed = closed
        self._gathering = Gathering(Pairs(memory.key, memory.under, memory.over))
        self._scales = [Scale(scale) for scale in memory.scales]

    def __bool__(self) -> bool:
        """Whether any window is open."""
        return bool(self._gathering) or any(self._scales)

    def remember(self) -> AcceptanceMemory:
        """The memory, with what was only gathered so far."""
        pairs = self._gathering.totals()
        self.memory.key, self.memory.under, self.memory.over = pairs.key, pairs.under, pairs.over
        return self.memory

    def add(self, cell: SequenceCells) -> None:
        if not len(cell.bucket):
            return
        buckets = self._places.of(cell.bucket)
        self._grow(cell.ts)
        end = cell.ts + CELL_SECONDS
        self.memory.seen[buckets[cell.decode_rows > 0]] = end
        if cell.reached.shape[1]:
            self.memory.drafted[buckets[cell.reached[:, 0] > 0]] = end
        judged = np.flatnonzero((cell.reached.any(axis=1)) | (cell.resumed_steps > 0))
        if len(judged):
            self._gathering.add(_pairs(cell, buckets, judged))

    def tick(self, start: float, ts: float, cut: Collection[str] = ()) -> None:
        """End the windows that end at `ts`, and all windows of the engines `cut`. `start`: of the five minutes."""
        pairs, size = self._gathering.take(), len(self._places)
        for place, (length, scale) in enumerate(zip(WINDOWS, self._scales, strict=True)):
            scale.feed(pairs, size)
            ends = self._ending(place, ts, cut, size)
            if ends.any():
                self._close(place, start if place == 0 else (ts - 1) // length * length, ts, ends)
        for engine in cut:
            self.memory.begun[engine] = ts

    def forget(self, number: int) -> None:
        """Remember nothing of a bucket that was not seen for long."""
        del self.memory.buckets[number]
        self.memory.seen[number] = self.memory.drafted[number] = NEVER

    def _grow(self, ts: float) -> None:
        memory, known = self.memory, len(self.memory.seen)
        missing = len(self._places) - known
        if missing > 0:
            memory.seen = np.concatenate([memory.seen, np.full(missing, NEVER)])
            memory.drafted = np.concatenate([memory.drafted, np.full(missing, NEVER)])
        if len(memory.buckets) < len(self._places.names):
            for number in self._places.names:
                if number not in memory.buckets:
                    memory.buckets[number] = new_bucket(ts)
                    self._arrived(number, ts)

    def _ending(self, place: int, ts: float, cut: Collection[str], size: int) -> Bools:
        if place == 0 or ts % WINDOWS[place] == 0:
            return np.ones(size, dtype=bool)
        ends = np.zeros(size, dtype=bool)
        for engine in cut:
            ends[self._places.of_engine(engine)] = True
        return ends

    def _close(self, place: int, start: float, end: float, ends: Bools) -> None:
        buckets, sums, carried = self._scales[place].close(ends)
        self._closed(place, end, buckets, sums)
        for number, one, share in zip(buckets.tolist(), sums, carried.tolist(), strict=True):
            bucket = self.memory.buckets[number]
            since = max(start, bucket.first, self.memory.begun.get(self._places.names[number][0], start))
            self._verdicts.window(number, bucket, place, Window(since, end, one, share))


def _pairs(cell: SequenceCells, buckets: Ints, where: Ints) -> Pairs:
    """The judged entries as pairs; see `store.judge.pairs.Pairs` for the columns."""
    depths = np.arange(1, cell.reached.shape[1] + 1)
    under = np.empty((len(where), len(depths) + 1))
    over = np.empty_like(under)
    under[:, RESUMED], over[:, RESUMED] = cell.resumed_steps[where], cell.resumed_ratio[where]
    under[:, 1:], over[:, 1:] = cell.reached[where] * depths, cell.matched[where]
    return Pairs(keys_of(buckets[where], cell.sequence[where]), under, over)
