"""What is remembered of one bucket's acceptance: windows, references, what is suspected and what is certain."""

from __future__ import annotations

from math import inf
from typing import Literal

import msgspec

from store.judge.inputs import Floats
from store.judge.reference import Baseline, pooled
from store.judge.scale import Window
from store.judge.settings import WINDOWS, JudgeSettings

Against = Literal["baseline", "pinned", "before", "change"]
"""The reference: the moving baseline, the pinned reference, the last windows before a moment, or those before a change
of version or configuration."""
Suspected = Literal["drift", "shift"]


class Suspicion(msgspec.Struct):
    """A window stood below a reference; the next one will tell. The reference is kept as it was."""

    kind: Suspected
    against: Against
    levels: list[Floats]
    """Moments of the reference; of a shift also of the last window before the moment. A window has to stand below all
    of them; the first is the one to show."""
    threshold: float
    moment: float
    """What has fallen stood higher until here, Unix seconds."""
    since: float
    """End of the first window that stood below, …"""
    first: Floats
    """… its moments, …"""
    sure: bool
    """… and whether it did so at the full confidence."""
    carried: float = 1.0
    """Share of the steps that comes from sequences that the first window had, too: an estimate from above."""


class Standing(msgspec.Struct):
    """The acceptance alert of the bucket that fires."""

    alert: int
    scale: int
    against: Against
    level: Floats
    since: float
    cleared: list[int]
    """For each window length: looks in a row in which it was cleared."""


class Change(msgspec.Struct):
    """The bucket's engine changed: the level before it, to compare with."""

    kind: Literal["version", "configuration"]
    ts: float
    text: str
    level: Floats
    low_already: bool
    """An alert fired on what there was before."""
    looks_left: list[int]
    """For each window length: looks that are still held against the level before."""


class Track(msgspec.Struct):
    """The windows of one length."""

    recent: list[Window] = []
    """The last ones that were looked at, ascending."""
    suspicions: dict[Suspected, Suspicion] = {}


class BucketMemory(msgspec.Struct):
    first: float
    """Start of the first cell, Unix seconds."""
    tracks: list[Track]
    baseline: Baseline
    standing: Standing | None = None
    pending: int | None = None
    """The alert that is pending."""
    change: Change | None = None
    settled: float = 0.0
    """Windows that began earlier are no reference for a shift: one was found there, or a level was accepted."""
    frozen_until: float = 0.0
    """Windows that began earlier don't count for the baseline: an alert fired in them."""
    replaced_low: bool = False
    """Its version was replaced while an alert fired on it."""
    resumed_noted: float = 0.0
    """When post-resume acceptance was last noted, Unix seconds."""

    @property
    def suspected(self) -> bool:
        return any(track.suspicions for track in self.tracks)

    def clear_suspicions(self, older_than: float = inf) -> None:
        for track in self.tracks:
            track.suspicions = {kind: one for kind, one in track.suspicions.items() if one.since >= older_than}

    def level_before(self, ts: float, settings: JudgeSettings) -> Floats | None:
        """The best that is known of the level until `ts`: the baseline where all was well, else the last windows."""
        if self.standing is None:
            usable = self.baseline.usable(ts, settings)
            if usable is not None:
                return usable
        for place in (1, 0, 2):
            windows = [one for one in self.tracks[place].recent if one.end > ts - settings.before_seconds]
            if windows:
                return pooled(windows[-settings.before_windows :])
        return None


def new_bucket(first: float) -> BucketMemory:
    return BucketMemory(first, [Track() for _ in WINDOWS], Baseline())
