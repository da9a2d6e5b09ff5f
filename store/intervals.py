"""95 % intervals of an acceptance rate. Steps of one request are alike, so the sample is of sequences, not of steps."""

from __future__ import annotations

from engine import intervals
from engine.intervals import CONFIDENCE, Interval
from store.counts import RATIO_UNIT, SequenceTotals


def effective_n(totals: SequenceTotals) -> float:
    """As many sequences of equally many draft steps would tell as much."""
    return intervals.effective_n(totals.draft_steps)


def acceptance_interval(totals: SequenceTotals, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of α = Σx_s / Σy_s over sequences, x_s = Σ a/d and y_s the draft steps of sequence s.

    `engine.intervals.ratio_interval`; None where nothing was drafted or one sequence alone tells of no spread.
    """
    return intervals.ratio_interval(totals.ratio / RATIO_UNIT, totals.draft_steps, confidence=confidence)
