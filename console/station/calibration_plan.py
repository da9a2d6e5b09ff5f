"""What to measure next while an engine is calibrated. Arithmetic only: it can be tried on machines that nobody has.

A *visit* measures both arms of one batch size, K = 0 and drafting, one after the other. Each batch size is visited in
both halves of the time (parity of the 10-s cell): the step-time model is held out by halves, and one that was fitted to
small batches only would be off at the large ones, so that nothing would be believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from engine.step_time.cells import ENOUGH_STEPS
from store.levels import CELL_SECONDS

Arm = Literal["vanilla", "drafting"]

VISIT_STEPS: Final[Mapping[Arm, int]] = {"vanilla": ENOUGH_STEPS + 2, "drafting": ENOUGH_STEPS // 2 + 2}
"""Steps of one visit. K = 0 is what all is held against, and cheap: enough for a cell in each half of the time."""
_HALF_ENOUGH: Final = ENOUGH_STEPS // 2
"""Steps at K = 0 in a half that is not to be visited again for so few more."""
_MOST_VISITS: Final = 4
"""Visits of one batch size, however little they brought."""
LARGEST_BATCH: Final = 256
"""Beyond it the fit has to do."""


@dataclass(frozen=True)
class Measured:
    """What is known of one batch size."""

    vanilla: tuple[int, int] = (0, 0)
    """Steps at K = 0 in each half of the time."""
    drafting: int = 0
    """Steps with drafts."""
    visits: int = 0
    """Complete ones."""
    seconds: Mapping[Arm, float] | None = None
    """What each arm took on the last visit."""

    @property
    def known(self) -> bool:
        """Whether the step-time model believes both arms."""
        return min(sum(self.vanilla), self.drafting) >= ENOUGH_STEPS

    def wanting(self) -> frozenset[int]:
        """The halves in which another visit is called for; empty for none."""
        if self.visits >= _MOST_VISITS:
            return frozenset()
        short = frozenset(half for half in (0, 1) if self.vanilla[half] < _HALF_ENOUGH)
        return short or (frozenset() if self.known else frozenset((0, 1)))


class Visit(NamedTuple):
    batch: int
    arms: tuple[Arm, Arm]
    """In the order in which to measure them."""


class Pause(NamedTuple):
    """Nothing is left to do in this half of the time."""

    until: float


def batches(most: int) -> tuple[int, ...]:
    """Powers of two up to `most` sequences, and `most` itself, which stands for the batches above the last of them."""
    most = min(most, LARGEST_BATCH)
    powers = [1 << power for power in range(most.bit_length())]
    return tuple(powers if powers[-1] == most else [*powers, most])


def half_of(ts: float) -> int:
    """The half of the time that a moment is in, as `store.step_times` has it."""
    return int(ts // CELL_SECONDS) % 2


def next_visit(
    sizes: Sequence[int], measured: Mapping[int, Measured], now: float, deadline: float
) -> Visit | Pause | None:
    """What to do next; None when all is done or nothing more fits.

    Small batches come first. A larger one is begun only where its two visits and all that is outstanding of the smaller
    ones fit in; the smallest is always begun. Where the time ends before its other half comes, both visits are in one.

    Args:
        sizes: batch sizes, ascending.
        measured: of those that were visited before.
        now, deadline: Unix seconds; halves of the time hang on them.
    """
    begun = [size for size in sizes if size in measured]
    incomplete = sum(_cost(size, measured) for size in begun if not measured[size].known)
    outstanding = [
        size
        for size in begun
        if measured[size].wanting()
        and now + (incomplete if measured[size].known else 0.0) + _cost(size, measured) <= deadline
    ]
    for size in outstanding:
        arms = _order(size, begun.index(size), measured, now)
        if arms is not None:
            return Visit(size, arms)
    if len(begun) < len(sizes):
        new = sizes[len(begun)]
        if not begun or now + 2 * _cost(new, measured) + sum(_rest(begun, measured)) <= deadline:
            return Visit(new, _alternating(len(begun), 0))
    return _in_the_other_half(outstanding, measured, now, deadline) if outstanding else None


def _in_the_other_half(
    outstanding: Sequence[int], measured: Mapping[int, Measured], now: float, deadline: float
) -> Visit | Pause | None:
    """Wait for it where all that is outstanding fits in after; else have at least steps enough of each batch size."""
    boundary = (now // CELL_SECONDS + 1) * CELL_SECONDS
    if boundary + sum(_rest(outstanding, measured)) <= deadline:
        return Pause(boundary)
    incomplete = [size for size in outstanding if not measured[size].known]
    if incomplete:
        return Visit(incomplete[0], _alternating(0, measured[incomplete[0]].visits))
    return Pause(boundary) if boundary + _cost(outstanding[0], measured) <= deadline else None


def _order(size: int, place: int, measured: Mapping[int, Measured], now: float) -> tuple[Arm, Arm] | None:
    """The order of arms that puts K = 0 into a half in which it is wanted; None where neither does."""
    known = measured[size]
    assert known.seconds is not None
    preferred = _alternating(place, known.visits)
    for arms in (preferred, preferred[::-1]):
        before = known.seconds["drafting"] if arms[0] == "drafting" else 0.0
        if half_of(now + before + known.seconds["vanilla"] / 2) in known.wanting():
            return arms
    return None


def _alternating(place: int, visits: int) -> tuple[Arm, Arm]:
    """A drift of the machine's speed must not look like a difference between the arms."""
    return ("vanilla", "drafting") if (place + visits) % 2 == 0 else ("drafting", "vanilla")


def _cost(size: int, measured: Mapping[int, Measured]) -> float:
    """Seconds of a visit: as long as the last one, or in proportion to that of the largest batch visited so far. Steps
    grow no faster than the batch."""
    of = size if size in measured else max(measured)
    taken = measured[of].seconds
    return sum(taken.values()) * max(1.0, size / of) if taken is not None else 0.0


def _rest(begun: Iterable[int], measured: Mapping[int, Measured]) -> Iterable[float]:
    """Seconds of the visits that are still wanted."""
    return (_cost(size, measured) for size in begun if measured[size].wanting())
