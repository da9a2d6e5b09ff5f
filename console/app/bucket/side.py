"""Beside a bucket's series: acceptance by position, theory and measurement by K, the worst sequences. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from console.app.bucket.facts import BucketFacts
from console.app.bucket.speedup_by_k import curve_lines, k_table
from console.app.drawing import numbers, plots
from console.app.drawing.spans import EMPTY, Line, Span, clean, clip, cut, left, wrap
from console.feed.bucket_detail import WorstRow, WorstSequence

MOST_POSITIONS: Final = 12
_BROAD, _HIGH = 76, 12
"""Cells from which positions and speedups stand side by side; lines from which they stand below one another."""


def side(facts: BucketFacts, width: int, height: int) -> list[Line]:
    """At most `height` lines of at most `width` cells; what doesn't fit goes from below."""
    if width < 20 or height < 1:
        return []
    if width >= _BROAD:
        lines = _side_by_side(facts, width, height)
        worst = [EMPTY, *worst_lines(facts, width)]
        lines += worst if height - len(lines) > 3 else []
    elif height < _HIGH:
        lines = position_lines(facts, width)
    else:
        lines = _stacked(facts, width, height)
    return [cut(line, width) for line in lines[:height]]


def _stacked(facts: BucketFacts, width: int, height: int) -> list[Line]:
    positions = [*position_lines(facts, width), *_levels(facts, width)]
    table, worst = k_table(facts, width), worst_lines(facts, width)
    room = height - len(positions) - len(table) - min(len(worst), 5) - 3
    curve = curve_lines(facts, width, min(14, room)) if room >= 4 else []
    return [*positions, EMPTY, *table[:1], *curve, *table[1:], EMPTY, *worst]


def _side_by_side(facts: BucketFacts, width: int, height: int) -> list[Line]:
    """Positions at the left, the speedups by K at the right."""
    half = width // 2
    positions = position_lines(facts, half - 2)
    positions += _levels(facts, half - 2) if height > len(positions) + 1 else []
    pairs = zip_longest(positions, k_table(facts, width - half), fillvalue=EMPTY)
    return [(*_filled(one, half), *two) for one, two in pairs]


def _filled(line: Line, width: int) -> Line:
    line = cut(line, width - 2)
    return (*line, (" " * (width - sum(len(text) for text, _ in line)), "text"))


def position_lines(facts: BucketFacts, width: int) -> list[Line]:
    """Marginal and conditional acceptance of each draft position: of the table's window."""
    figures = facts.bucket.figures if facts.bucket is not None else None
    title: Line = (("acceptance by position", "title"),)
    if figures is None or not figures.position_marginal:
        return [title, (("  — nothing was drafted in this window", "dim"),)]
    room = max(4, (width - 4 - 2 * 7) // 2)
    heading: Line = ((left("  j  accepted", 4 + 5 + room + 2), "dim"), ("given j−1", "dim"))
    lines: list[Line] = [title, heading]
    pairs = list(zip(figures.position_marginal, figures.position_conditional, strict=True))
    for position, (marginal, conditional) in enumerate(pairs[:MOST_POSITIONS], 1):
        lines.append(
            (
                (f"{position:>3} ", "dim"), *_bar(marginal, room, "alpha"), ("  ", "text"),
                *_bar(conditional, room, "k"),
            )
        )  # fmt: skip
    if len(pairs) > MOST_POSITIONS:
        lines.append(((f"    and {len(pairs) - MOST_POSITIONS} more; enter lists them", "dim"),))
    return lines


def _bar(value: float | None, room: int, role: str) -> tuple[Span, Span]:
    figure = f"{numbers.fraction(value):>4} "
    drawn = " " * room if value is None else plots.bar(value, room)
    return (figure, "text"), (drawn, "alpha" if role == "alpha" else "k")


def _levels(facts: BucketFacts, width: int) -> list[Line]:
    """What the judge holds it against, where that can't be drawn beside α; or why there is nothing."""
    level = facts.detail.level if facts.detail is not None else None
    if level is None:
        why = facts.why("level")
        text = f"baseline — {clean(why)}" if why else ""
        return [((f"  {part}", "dim"),) for part in wrap(text, max(10, width - 2))]
    parts = []
    if level.baseline is not None:
        parts.append(f"7 d {numbers.fraction(level.baseline)} (n {numbers.count(level.baseline_sequences)})")
    if level.pinned is not None:
        parts.append(f"pinned {numbers.fraction(level.pinned)}")
    drawn = "" if level.depth == facts.usual_depth else "; K varies, so it stands on no α axis"
    text = f"acceptance at depth {level.depth}: {', '.join(parts)}{drawn}"
    return [((f"  {part}", "dim"),) for part in wrap(text, max(10, width - 2))]


def worst_lines(facts: BucketFacts, width: int) -> list[Line]:
    """The sequences of lowest acceptance, each with what its last rows accepted of what they drafted."""
    title: Line = (("worst sequences", "title"), ("  accepted/drafted, newest last", "dim"))
    worst = facts.detail.worst if facts.detail is not None else []
    if not worst:
        return [title, ((f"  — {clean(facts.why('worst'))}", "dim"),)]
    lines = [title]
    for one in worst:
        lines += [_sequence(one, width), _rows(one.rows, width)]
    return lines


def _sequence(one: WorstSequence, width: int) -> Line:
    figures = f"α {numbers.fraction(one.alpha)}  {numbers.count(one.steps)} steps"
    return (
        (f"  {left(clip(clean(one.name), width - len(figures) - 4), width - len(figures) - 4)}", "text"),
        (f" {figures}", "dim"),
    )


def _rows(rows: list[WorstRow], width: int) -> Line:
    """The newest that fit; the limit where it is not that of the row before."""
    text = ""
    for first in range(len(rows)):
        text = "  ".join(_told(rows[first:]))
        if len(text) <= width - 4:
            break
    return ((f"    {text}", "dim"),)


def _told(rows: list[WorstRow]) -> Iterator[str]:
    limit = ""
    for row in rows:
        told = f"{row.accepted}/{row.drafted}"
        yield told if row.limit == limit else f"{clean(row.limit)} {told}"
        limit = row.limit
