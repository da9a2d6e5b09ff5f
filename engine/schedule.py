"""Draft schedules: K per number of scheduled sequences, in vLLM's form `[[first, last, k], …]` (inclusive ranges).

Read as vLLM reads `num_speculative_tokens_per_batch_size`: gaps and the tail carry the last K, and K above the engine's
start-up maximum is clamped to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

LARGEST: Final = 2**31 - 1
"""No batch size or K is larger: they travel as 32-bit numbers."""


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
    if isinstance(entries, str | bytes) or not isinstance(entries, Sequence) or not entries:
        raise ScheduleError("a schedule is a non-empty list of [first, last, k]")
    ranges: list[Range] = []
    for number, entry in enumerate(entries, 1):
        ranges.append(_parse_entry(number, entry, ranges[-1] if ranges else None))
    return tuple(ranges)


def _parse_entry(number: int, entry: Any, previous: Range | None) -> Range:
    where = f"entry {number} ({_shown(entry)})"
    if isinstance(entry, str | bytes) or not isinstance(entry, Sequence) or len(entry) != 3:
        raise ScheduleError(f"{where}: must be [first, last, k]")
    for value in entry:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ScheduleError(f"{where}: {_shown(value)} is no whole number")
        if value > LARGEST:
            raise ScheduleError(f"{where}: {_shown(value)} is above {LARGEST}")
    parsed = Range(*entry)
    if parsed.k < 0:
        raise ScheduleError(f"{where}: K must be 0 or more")
    if previous is None and parsed.first != 1:
        raise ScheduleError(f"{where}: the first range must start at batch size 1")
    if parsed.last < parsed.first:
        raise ScheduleError(f"{where}: ends at {parsed.last}, before it starts at {parsed.first}")
    if previous is not None and parsed.first <= previous.last:
        raise ScheduleError(
            f"{where}: ranges must rise and not overlap; it begins at {parsed.first}, the one before it ends at "
            f"{previous.last}"
        )
    return parsed


def _shown(value: Any) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def lookup(schedule: DraftSchedule, running: int) -> int:
    """K for `running` scheduled sequences (≥ 1); gaps and the tail carry the K of the range before them."""
    k = schedule[0].k
    for entry in schedule:
        if entry.first > running:
            break
        k = entry.k
    return k


class Clamped(NamedTuple):
    """A schedule as an engine with a certain start-up maximum executes it."""

    schedule: DraftSchedule
    entries: DraftSchedule
    """The entries that ask for more than the maximum, as they were asked."""


def clamp(schedule: DraftSchedule, max_k: int) -> Clamped:
    """Lower every K above `max_k` (≥ 0 tokens) to it, and say which entries that were."""
    lowered = tuple(entry._replace(k=min(entry.k, max_k)) for entry in schedule)
    return Clamped(lowered, tuple(entry for entry in schedule if entry.k > max_k))
