"""Every number of the judge that an operator may want to change. Falls are fractions: 0.05 is five points."""

from __future__ import annotations

from typing import Final

import msgspec

HOUR: Final = 3600.0
DAY: Final = 86400.0

WINDOWS: Final = (300.0, HOUR, 6 * HOUR)
"""Lengths of the windows, s, each a whole multiple of the one before; they start at multiples of their length."""
SHIFT_WINDOWS: Final = 2
"""A shift is looked for in the first so many of them: at most an hour long."""


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are those of the definitions, where these name a number."""

    enough_sequences: int = 30
    """A window is looked at with as many sequences, …"""
    keep_sequences: int = 20
    """… and with as many when the one before it was, too."""
    fewest_effective: float = 15.0
    """Effective n that both sides of a comparison need."""
    confidence: float = 0.9999
    """One-sided, of the t bound. An alert fires on what two windows in a row show at this confidence each, …"""
    least_confidence: float = 0.99
    """… or at this one each, and as much in both together: one may make up for the other, but not stand in for it."""
    carried_share: float = 0.5
    """The second window in a row confirms the first where at most this share of its steps comes from sequences that
    the first one had, too, …"""
    carried_seconds: float = HOUR
    """… or so much later."""
    depth_steps: int = 30
    """A depth is common where both sides have as many draft steps of it, …"""
    depth_sequences: int = 10
    """… of as many sequences, …"""
    depth_share: float = 0.5
    """… and as large a share of what is drafted now."""

    drift_fall: float = 0.05
    """Below a baseline or a pinned reference."""
    shift_fall: float = 0.10
    """Below the last window before a moment."""
    change_fall: float = 0.05
    """Below the level before a change of version or configuration."""
    change_looks: int = 3
    """So many looks after a change are held against the level before it."""
    clear_fall: float = 0.025
    """An alert is over when two looks in a row stand less than this below its reference."""
    step_confidence: float = 0.9
    """A drift is called a shift where the fall exceeds that of a shift at this confidence, one-sided, …"""
    slide_share: float = 0.25
    """… unless the window before had left the reference and those after still fall, at that confidence and by more than
    this share of it together: then it is a slow fall."""
    before_windows: int = 6
    """The level before a moment is that of up to as many windows, pooled."""
    before_seconds: float = DAY
    """Older windows are no longer "before"."""

    baseline_seconds: float = 7 * DAY
    """Length of the moving baseline."""
    usable_seconds: float = DAY
    """Age at which it can be used."""
    pinned_seconds: float = 7 * DAY
    """A pinned reference is the first so many seconds of a model version in a bucket, or after a level was accepted."""
    stale_seconds: float = DAY
    """A suspicion that is not looked at again for so long is dropped; a bucket without traffic for so long ends its
    alerts."""
    forget_seconds: float = 30 * DAY
    """A bucket that was not seen for so long is forgotten."""
    blind_seconds: float = 60.0
    """A bucket with decode rows but no draft step for so long is blind."""

    speedup_floor: float = 1.5
    """Of an engine: below it warns; below 1 is critical."""
    failing_speedup: float = 1.2
    """A workload fails with a realised speedup below this …"""
    failing_waste: float = 0.5
    """… and a waste ratio above this."""
    clear_speedup: float = 0.05
    """A speedup alert is over when two windows in a row stand this far above its floor (a waste: below its limit)."""
    speed_confidence: float = 0.95
    """Two-sided, of the interval of a speedup or a waste."""
    fewest_cells: int = 6
    """A speedup window needs as many 10-s cells."""
    measured_share: float = 0.8
    """Share of an engine's time that must have a vanilla-equivalent."""
    load_change: float = 1.5
    """A factor in the number of running sequences from which on load is named."""
    draft_length_change: float = 0.5
    """A difference of the mean executed K from which on it is named, tokens."""

    mix_fall: float = 0.05
    """A pooled fall by traffic mix of this size is noted, …"""
    mix_share: float = 2 / 3
    """… where the mix carries at least this share of it."""
    resumed_fall: float = 0.05
    """Post-resume acceptance so far below the other is noted."""

    quiet_seconds: float = 300.0
    """Losses, quarantined rows, clock steps and mismatches that come again sooner belong to the same alert."""
    kept_resolved: int = 200
    """Resolved alerts that are remembered, to be acknowledged; older ones are the store's."""


DEFAULTS: Final = JudgeSettings()
