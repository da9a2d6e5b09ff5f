"""Every series of a bucket at one moment, in words and figures: value, interval, n; and why one is missing. Pure."""

from __future__ import annotations

from typing import Final

from console.app.bucket.facts import GLYPHS, BucketFacts
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Part, Role, Span, clean, cut, fit, join, text_of
from console.app.live.columns import bucket_name
from store.figures import SeriesPoint

EXPERIENCED: Final = "━"
MARGINAL: Final = "◇"
FEW: Final = 10
"""Sequences below which an acceptance is not to be relied on."""

MOST_WIDE: Final = 10.0
"""Upper bound over lower bound from which a ratio's interval is not written out."""

_NOWHERE: Final = SeriesPoint(0.0, None, None, None, 0.0, None, None)


def moment_text(facts: BucketFacts) -> str:
    """The cell that is read out."""
    point = facts.point
    if point is None:
        return ""
    text = f"{numbers.clock(point.ts - facts.cell)} – {numbers.clock(point.ts)}"
    return f"at {text}" if facts.at is not None else f"newest {text}"


def alpha_readout(facts: BucketFacts) -> Line:
    point = facts.point
    start: Line = (("α ", "alpha"),)
    if point is None or point.alpha is None:
        return (*start, ("—", "dim"), (_nothing_drafted(point), "dim"))
    few = point.sequences is not None and point.sequences < FEW
    parts: list[Span] = [*start, (numbers.fraction(point.alpha), "dim" if few else "bright")]
    if point.alpha_low is not None and point.alpha_high is not None:
        parts.append((f"  {numbers.fraction(point.alpha_low)}–{numbers.fraction(point.alpha_high)}", "dim"))
    if point.sequences:
        parts.append((f"  n {numbers.count(point.sequences)}{' few' if few else ''}", "dim"))
    return tuple(parts)


def _nothing_drafted(point: SeriesPoint | None) -> str:
    if point is None or point.executed_k is None:
        return "  no rows"
    return "  nothing drafted"


def waste_readout(facts: BucketFacts) -> Line:
    point = facts.point
    return (("waste ", "dim"), (numbers.fraction(point.waste if point is not None else None), "text"))


def k_readout(facts: BucketFacts) -> Line:
    """Mean K of the bucket's rows, under the mean load of the engine."""
    point = facts.point
    k = None if point is None else point.executed_k
    running = None if point is None else point.running
    return (
        ("K executed ", "k"), (numbers.ABSENT if k is None else f"{k:.1f}", "text"),
        ("  running ", "load"), (numbers.ABSENT if running is None else f"{running:.1f}", "text"),
    )  # fmt: skip


def speedup_readout(facts: BucketFacts, short: bool = False) -> Line:
    """Two figures, two signs, two names."""
    point = facts.point or _NOWHERE
    experienced = _ratio(
        f"{EXPERIENCED} {'exp' if short else 'experienced'} ", "text", point.speedup, point.speedup_low,
        point.speedup_high,
    )  # fmt: skip
    gain = _ratio(
        f"{MARGINAL} {'marg' if short else 'marginal'} ", "accent", point.marginal, point.marginal_low,
        point.marginal_high,
    )  # fmt: skip
    return join([experienced, gain], ("   ", "text"))


def _tells(low: float, high: float) -> bool:
    """An interval over more than a decade says nothing, in many digits."""
    return low > 0 and high <= MOST_WIDE * low


def _ratio(name: str, role: Role, value: float | None, low: float | None, high: float | None) -> Line:
    if value is None:
        return ((name, role), (numbers.ABSENT, "dim"))
    bounds = "" if low is None or high is None else f" {low:.2f}–{high:.2f}" if _tells(low, high) else " ±?"
    return ((name, role), (f"{value:.2f}", "bright"), (bounds, "dim"))


def why_no_speedup(facts: BucketFacts) -> str:
    """Why one of the two curves is not there at all; empty where both are."""
    points = facts.points
    missing = []
    if not any(point.speedup is not None for point in points):
        missing.append("experienced: needs measured vanilla times")
    if not any(point.marginal is not None for point in points):
        why = facts.why("marginal")
        missing.append(f"marginal: {why}" if why else "marginal: none in this stretch")
    return " · ".join(missing)


def readout_text(facts: BucketFacts) -> list[str]:
    """All of it as lines of text, with the bucket, its window and the moment."""
    marks = facts.marks_at(facts.index) if facts.index is not None else []
    lines: list[Line] = [alpha_readout(facts), waste_readout(facts), k_readout(facts), speedup_readout(facts)]
    return [
        bucket_name(facts.key), f"last {facts.span.name}, {moment_text(facts) or 'nothing recorded'}",
        *(text_of(line) for line in lines),
        *(f"{GLYPHS[mark.kind][2]} {numbers.clock(mark.ts)} {clean(mark.text)}" for mark in marks),
    ]  # fmt: skip


def short_readout(facts: BucketFacts, width: int) -> Line:
    """The rates in one line."""
    return fit([Part(alpha_readout(facts), 0), Part(speedup_readout(facts, short=True), 1)], width)


def mark_line(facts: BucketFacts, width: int) -> Line:
    """What happened in the cell that is read out; else what the marks mean that are there."""
    if facts.index is None:
        return EMPTY
    here = facts.marks_at(facts.index) if facts.at is not None else []
    if here:
        mark = here[-1]
        glyph, role, _ = GLYPHS[mark.kind]
        more = f"  (+{len(here) - 1} more)" if len(here) > 1 else ""
        return cut(((f"{glyph} ", role), (f"{numbers.clock(mark.ts)} {clean(mark.text)}{more}", "text")), width)
    kinds = [kind for kind in GLYPHS if any(mark.kind == kind for mark in facts.marks)]
    return fit([Part(((f"{GLYPHS[kind][0]} ", GLYPHS[kind][1]), (GLYPHS[kind][2], "dim"))) for kind in kinds], width)
