"""Where the cursor of a bucket's series goes: from point to point, from mark to mark, to a moment. Pure."""

from __future__ import annotations

from console.app.bucket.facts import SPANS, BucketFacts


def next_point(facts: BucketFacts, step: int) -> float | None:
    """The moment one point on, back where `step` is negative; the same at the edge. None: nothing is known."""
    if facts.index is None:
        return None
    index = facts.index + step
    return _middle(facts, index) if 0 <= index < len(facts.points) else facts.at


def next_mark(facts: BucketFacts, step: int) -> float | None:
    """The moment of the next mark, or of the one before, and round; None where there is none. Marks in one cell count
    once, and where no moment is chosen the first or the last is next."""
    places = sorted({facts.number_of(mark.ts) for mark in facts.marks})
    if not places:
        return None
    here = facts.index if facts.at is not None else None
    if step > 0:
        return _middle(facts, next((place for place in places if here is not None and place > here), places[0]))
    earlier = (place for place in reversed(places) if here is not None and place < here)
    return _middle(facts, next(earlier, places[-1]))


def shortest_span(ts: float, now: float) -> int | None:
    """Number of the shortest window that surely holds a moment; None where none does."""
    held = (span.seconds * (1 - 1 / span.points) for span in SPANS)
    return next((place for place, seconds in enumerate(held) if now - ts < seconds), None)


def _middle(facts: BucketFacts, index: int) -> float:
    return facts.points[index].ts - facts.cell / 2
