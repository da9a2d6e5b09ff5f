"""Two policies over batch size, range by range: what K is and what it would be. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from console.app.drawing.spans import Line, left
from console.app.policy.schedule_strip import Stretch, stretches
from engine.records import PolicyMode

MOST: Final = 7
"""Lines that a dialog on a small terminal has for ranges."""


class RangeChange(NamedTuple):
    """Batch sizes `first` to `last`, None for all above."""

    first: int
    last: int | None
    before: int
    after: int


def by_range(before: PolicyMode, after: PolicyMode, max_k: int | None) -> list[RangeChange]:
    """Each range of batch sizes in which neither changes."""
    old, new = stretches(before, max_k), stretches(after, max_k)
    starts = sorted({stretch.first for stretch in (*old, *new)})
    ends = [start - 1 for start in starts[1:]]
    return [
        RangeChange(first, last, _k(old, first), _k(new, first))
        for first, last in zip(starts, [*ends, None], strict=True)
    ]


def range_lines(before: PolicyMode, after: PolicyMode, max_k: int | None) -> list[Line]:
    """A table: running sequences, K now and then, with an arrow where it changes."""
    rows = by_range(before, after, max_k)
    bounds = _bound(before), _bound(after)
    lines: list[Line] = [((left("running", 12) + left("K now", 8) + "then", "dim"),)]
    lines += [_row(row, bounds) for row in rows[:MOST]]
    if len(rows) > MOST:
        lines.append(((f"… {len(rows) - MOST} more ranges", "dim"),))
    return lines


def _row(row: RangeChange, bounds: tuple[str, str]) -> Line:
    sizes = str(row.first) if row.first == row.last else f"{row.first}──{row.last or ''}"
    arrow = "▲" if row.after > row.before else "▼" if row.after < row.before else ""
    moved = row.after != row.before
    return (
        (left(sizes, 12), "dim"),
        (left(f"{bounds[0]}{row.before}", 8), "text"),
        (left(f"{bounds[1]}{row.after}", 4), "bright" if moved else "text"),
        (arrow, "warn" if arrow == "▲" else "accent"),
    )


def _bound(mode: PolicyMode) -> str:
    """Under adaptive a schedule is a bound."""
    return "≤" if mode.mode == "adaptive" and mode.act is not False else ""


def _k(strip: list[Stretch], running: int) -> int:
    return next(stretch.k for stretch in strip if stretch.first <= running <= (stretch.last or running))
