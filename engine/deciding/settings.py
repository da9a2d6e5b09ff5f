"""The numbers by which K is decided, in one place."""

from __future__ import annotations

import msgspec

from engine.intervals import CONFIDENCE


class DecidingSettings(msgspec.Struct, frozen=True):
    """Defaults as in the design. Gains are ratios of tokens/s."""

    min_gain: float = 0.03
    """Tier 1 changes K for no smaller relative gain."""
    dwell_steps: int = 200
    """Steps with rows of the workload between two changes of its K, by either tier."""
    recent_s: float = 60.0
    """Tier 1 looks at the acceptance of these last seconds where they hold enough rows, …"""
    window_s: float = 300.0
    """… else at these, as tier 2 always does; tier 2 also waits so long before it turns a workload off."""
    load_s: float = 30.0
    """Seconds whose batches stand for the present load."""
    fallback_below: float = 1.0
    """Tier 2 turns a workload off when the upper bound of its marginal gain at K = 1 stays below this, …"""
    recover_above: float = 1.03
    """… and on again when the lower bound of its marginal gain lies above this."""
    confidence: float = CONFIDENCE
    """Of both bounds (two-sided)."""
    shortest_pause_s: float = 30.0
    """Pause between two tries of a K that was not worth it, doubled after each that fails …"""
    longest_pause_s: float = 600.0
    """… as long as a recovery still fits into this: pauses end at `pause_cap_s`."""
    confirming_share: float = 0.2
    """Part of the longest pause that is left for what follows a first promising try."""
    enough_rows: int = 30
    """Rows at risk from which a hazard is taken for known."""
    changed: float = 0.1
    """A hazard remembered of a deeper position is dropped once the one before it has moved by more than this."""
    hopeful: float = 0.8
    """Acceptance assumed of a first position of which nothing is known any more."""
    probe_share: float = 0.005
    """Most of the engine's busy time that probes may take."""
    probe_least_steps: int = 4
    """Shortest block, the discarded first step included."""
    probe_most_steps: int = 32
    """Longest block."""
    probe_rows: int = 64
    """Rows of the workload that a block is meant to give."""
    probe_clear_steps: int = 20
    """Steps kept clear between a block and a change of K, on both sides."""
    probe_wait_steps: int = 32
    """A block begins after 0 to this many steps less one, at random."""
    probe_patience_steps: int = 200
    """Steps after which an order that nobody carried out is given up."""
    score_steps: int = 200
    """Steps over which a decision is held against what happened."""
    forget_s: float = 3600.0
    """A workload not seen for so long is forgotten."""

    @property
    def pause_cap_s(self) -> float:
        """The longest pause between two tries, seconds."""
        return self.longest_pause_s * (1 - self.confirming_share)
