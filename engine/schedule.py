"""Draft schedules: K per number of scheduled sequences, in vLLM's form `[[first, last, k], …]` (inclusive ranges).

Read as vLLM reads `num_speculative_tokens_per_batch_size`: gaps and the tail carry the last K.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Batch sizes `first` to `last`, both included, draft `k` tokens."""

    first: int
    last: int
    k: int


DraftSchedule = tuple[Range, ...]


class ScheduleError(ValueError):
    """A schedule that cannot be meant: names the entry."""


def parse_schedule(entries: Sequence[Any]) -> DraftSchedule:
    """Check and freeze a schedule given as a list of `[first, last, k]`.

    Raises:
        ScheduleError: empty, not starting at 1, overlapping or backward ranges, or a K that is no whole number ≥ 0.
    """
    if isinstance(entries, str) or not isinstance(entries, Sequence) or not entries:
        raise ScheduleError("a schedule is a non-empty list of [first, last, k]")
    ranges: list[Range] = []
    for number, entry in enumerate(entries, 1):
        ranges.append(_parse_entry(number, entry, ranges[-1] if ranges else None))
    return tuple(ranges)


def _parse_entry(number: int, entry: Any, previous: Range | None) -> Range:
    where = f"entry {number} ({entry!r})"
    if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 3:
        raise ScheduleError(f"{where}: must be [first, last, k]")
    for value in entry:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ScheduleError(f"{where}: {value!r} is no whole number")
    parsed = Range(*entry)
    if parsed.k < 0:
        raise ScheduleError(f"{where}: K must be 0 or more")
    if parsed.last < parsed.first:
        raise ScheduleError(f"{where}: ends at {parsed.last}, before it starts at {parsed.first}")
    if previous is None and parsed.first != 1:
        raise ScheduleError(f"{where}: the first range must start at batch size 1")
    if previous is not None and parsed.first <= previous.last:
        raise ScheduleError(f"{where}: overlaps the entry before it, which ends at {previous.last}")
    return parsed


def lookup(schedule: DraftSchedule, running: int) -> int:
    """K for `running` scheduled sequences (≥ 1); gaps and the tail carry the K of the range before them."""
    k = schedule[0].k
    for entry in schedule:
        if entry.first > running:
            break
        k = entry.k
    return k
