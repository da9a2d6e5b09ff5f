"""One side of a comparison: figures per bucket, acceptance at every depth, and what was configured meanwhile.

Imports neither DuckDB nor numpy: a side travels over the feed, and whoever compares needs no store.
"""

from __future__ import annotations

from typing import Final

import msgspec

from store.figures import Figures, Window

DEFAULT_KEYS: Final = ("workload", "context", "temperature")
"""Without the model version, so that the same bucket under two versions is one line."""


class Depth(msgspec.Struct, frozen=True, array_like=True):
    """Acceptance at one depth m: mean over draft steps with d ≥ m of min(a, m)/m, with its 95 % interval by sequence.

    Without probe rows and post-resume draft steps, as alerts judge it.
    """

    acceptance: float
    low: float | None
    high: float | None
    """None where one sequence alone can't tell how sequences differ."""
    steps: int
    sequences: int


class Measured(msgspec.Struct, frozen=True):
    figures: Figures
    depths: list[Depth] = []
    """For m = 1, 2, …, as deep as anything was drafted."""


class Setting(msgspec.Struct, frozen=True):
    """The values that one setting had in the stretch, each once, in the order of time."""

    engine: str | None
    """None: a control, which holds for all engines."""
    name: str
    values: list[str]


class Run(msgspec.Struct, frozen=True, array_like=True):
    """An engine process that was recorded in the stretch. Times are Unix seconds; `boot`, where known, is its own."""

    engine: str
    started: float
    boot: str | None


class Side(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    start: float | None
    end: float | None
    """What was asked for: (start, end], Unix seconds; None: from the beginning, to the end."""
    window: Window | None
    """Recorded time that there was in it; None: nothing ran."""
    keys: list[str]
    buckets: list[Measured]
    total: Measured | None
    settings: list[Setting]
    runs: list[Run]
    quarantined: int
    gaps: int
    frames_lost: int
    notes: list[str]


def untouched(setting: str) -> str:
    """What holds of a control that nobody touched: of `cap`, `fallback`, `lane of code` …"""
    return {"cap": "none", "fallback": "off", "lane": "speculative", "K": "free"}[setting.split(" of ", 1)[0]]
