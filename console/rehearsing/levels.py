"""The levels of a draft schedule that a rehearsal goes through: K over a range of running sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.schedule import DraftSchedule, Range, ScheduleError, clamp, parse_schedule

FULL: Final = ((1, 2, 4), (3, 8, 1), (9, 32, 0))
"""Three levels, the last of them the fallback: for an engine that drafts 4 tokens and runs 12 sequences or more."""

_FULL_SEQS: Final = 12
_BEYOND: Final = 3
"""Requests above the first of the last level: one that ends does not leave the level at once."""


class Level(NamedTuple):
    """`first` to `last` running sequences (`last` None: without end) draft `k`; `concurrent` requests stay inside."""

    first: int
    last: int | None
    k: int
    concurrent: int

    def holds(self, running: int) -> bool:
        return running >= self.first and (self.last is None or running <= self.last)

    @property
    def stretch(self) -> str:
        return f"{self.first} or more" if self.last is None else f"{self.first} to {self.last}"


def default_schedule(max_k: int, max_num_seqs: int) -> DraftSchedule:
    """A schedule whose levels this engine can be brought to: `FULL`, or a smaller one of the same kind.

    Raises:
        ScheduleError: no level below K = 0 fits.
    """
    if max_k < 1:
        raise ScheduleError("the engine drafts nothing: there is no K to switch")
    if max_num_seqs < 2 or (max_k > 1 and max_num_seqs < 3):
        raise ScheduleError(f"the engine runs {max_num_seqs} sequences at once: too few for levels above each other")
    first, second, _ = FULL
    if max_num_seqs < _FULL_SEQS:
        few = max(1, max_num_seqs // 6)
        first = (1, few, first[2])
        second = (few + 1, max(few + 1, 2 * max_num_seqs // 3), second[2])
    last = (second[1] + 1, max(FULL[2][1], max_num_seqs), 0)
    if max_k == 1:  # two levels are all there can be
        return parse_schedule([(1, second[0] - 1, 1), (second[0], last[1], 0)])
    return clamp(parse_schedule([first, second, last]), max_k).schedule


def levels(schedule: DraftSchedule, max_k: int, max_num_seqs: int) -> list[Level]:
    """The levels of a schedule in rising order, as an engine with this maximum executes it.

    Raises:
        ScheduleError: the engine can't be brought to each of them, or the last is not K = 0.
    """
    merged = _merged(clamp(schedule, max_k).schedule)
    if merged[-1].k != 0:
        raise ScheduleError(f"the last entry ({list(merged[-1])}) must have K 0: that is the fallback that is tested")
    if len(merged) < 2:
        raise ScheduleError("all entries have K 0: there is nothing to fall back from")
    if merged[-1].first > max_num_seqs:
        raise ScheduleError(
            f"K {merged[-1].k} begins at {merged[-1].first} running sequences, and the engine runs at most "
            f"{max_num_seqs} (--max-num-seqs)"
        )
    ends: list[int | None] = [*(entry.first - 1 for entry in merged[1:]), None]
    return [
        Level(entry.first, last, entry.k, _concurrent(entry.first, last, max_num_seqs))
        for entry, last in zip(merged, ends, strict=True)
    ]


def up_and_down(levels: Sequence[Level]) -> list[Level]:
    """The order in which a rehearsal holds them: up to the last, and back."""
    return [*levels, *reversed(levels)]


def _merged(schedule: DraftSchedule) -> list[Range]:
    """Neighbours with the same K are one level."""
    found: list[Range] = []
    for entry in schedule:
        if not found or found[-1].k != entry.k:
            found.append(entry)
    return found


def _concurrent(first: int, last: int | None, most: int) -> int:
    return min(first + _BEYOND, most) if last is None else (first + last) // 2
