"""What a comparison finds, as `specdeck compare --json` prints it. All differences are B − A."""

from __future__ import annotations

from typing import Literal

import msgspec

from store.comparing.difference import Difference
from store.figures import Figures, Window

Told = Literal["acceptance", "speedup"]


class AtDepth(msgspec.Struct, frozen=True, kw_only=True):
    """Acceptance at the largest depth that both sides know enough of, else at the largest that both know at all."""

    depth: int
    acceptance: Difference
    few: bool
    """A side has fewer than 10 sequences or 30 draft steps of this depth."""


class BucketComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One bucket on both sides."""

    workload: str | None = None
    context: str | None = None
    temperature: str | None = None
    model_version: str | None = None
    engine: str | None = None
    a: Figures | None
    b: Figures | None
    """None: the bucket is on the other side only."""
    alpha: Difference | None = None
    k_differs: bool = False
    """The sides verified drafts of other lengths: α tells nothing then, acceptance at a common depth does."""
    at_depth: AtDepth | None = None
    speedup: Difference | None = None
    waste_ratio: float | None = None
    tokens_per_second: float | None = None
    """Differences without an interval."""
    few: bool = False
    """Acceptance or speedup rests on little on a side."""
    tells: list[Told] = []
    """What the 95 % intervals tell apart; never what carries few."""


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that was not the same on both sides; values in the order of time. `engine` None: of all."""

    engine: str | None
    name: str
    a: list[str]
    b: list[str]


class SideSummary(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    start: float | None
    end: float | None
    window: Window | None
    quarantined: int
    gaps: int
    frames_lost: int
    notes: list[str]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck compare --json` prints."""

    a: SideSummary
    b: SideSummary
    by: list[str]
    configuration: list[Differing]
    buckets: list[BucketComparison]
    total: BucketComparison | None
    notes: list[str]
