"""The figures of one bucket or of a pool of them, as `report --json`, the snapshot and the screens carry them.

Names, formulas and their sources: `store.metrics`. Absent is None, never 0 and never NaN. Rates are fractions.
Imports neither DuckDB nor numpy, so the console can read them for nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SpeedupState = Literal["ok", "few", "calibrating", "absent"]
BucketState = Literal["ok", "few", "blind", "calibrating"]


class BucketKey(msgspec.Struct, frozen=True, order=True):
    """Workload × context × temperature × model version (design §8). A key that was pooled over is None."""

    workload: str | None
    context: str | None
    temperature: str | None
    model_version: str | None


class Window(msgspec.Struct, frozen=True):
    """Recorded time covered, Unix seconds: the first step's start to the last step's end."""

    start: float
    end: float


class PostResume(msgspec.Struct, frozen=True, kw_only=True):
    """Draft steps of sequences that had just spent a long stretch at K = 0; see `store.resume`."""

    steps: int
    drafted: int
    accepted: int
    alpha: float | None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Every figure of `definitions.md` for one bucket and window. Counts are of tokens or rows."""

    workload: str | None = None
    context: str | None = None
    temperature: str | None = None
    model_version: str | None = None
    engine: str | None = None
    sequences: int | None
    """None, as everything that needs rows, where only an engine's counters are known; and where the rows are older than
    what is kept of their sequences."""
    steps: int
    """Draft steps: decode rows that drafted something."""
    decode_rows: int | None
    drafted: int
    accepted: int
    emitted: int | None
    """From all rows, those that end a prefill included."""
    alpha: float | None
    alpha_low: float | None
    alpha_high: float | None
    pooled_acceptance: float | None
    conditional_acceptance: float | None
    mean_acceptance_length: float | None
    committed_per_step: float | None
    waste_ratio: float | None
    drafted_share: float | None
    position_marginal: list[float | None]
    position_conditional: list[float | None]
    position_at_risk: list[float | None]
    k_histogram: dict[str, int]
    drafted_histogram: dict[str, int]
    cause_histogram: dict[str, int]
    limit_histogram: dict[str, int]
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    speedup_state: SpeedupState = "calibrating"
    tokens_per_second: float | None
    window: Window | None
    few: bool
    state: BucketState
    post_resume: PostResume | None = None

    @property
    def key(self) -> BucketKey:
        return BucketKey(self.workload, self.context, self.temperature, self.model_version)


class SeriesPoint(msgspec.Struct, frozen=True, array_like=True):
    """One cell of a bucket's time series; rates None where there is nothing to divide by."""

    ts: float
    """End of the cell, Unix seconds."""
    alpha: float | None
    waste: float | None
    executed_k: float | None
    """Mean k_asked over the bucket's decode rows."""
    tokens_per_second: float
    running: float | None
    """Mean number of running sequences of the engine in the cell."""
    accepted_length: float | None
    sequences: int | None = None
    """Sequences that drafted in the cell. This and what follows: None unless it was asked for."""
    alpha_low: float | None = None
    alpha_high: float | None = None
    speedup: float | None = None
    """Realised speedup: experienced, at equal batch. None while it calibrates."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    marginal: float | None = None
    """What the workload's own K bought, as the controller last worked it out in the cell."""
    marginal_low: float | None = None
    marginal_high: float | None = None


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the executed K."""

    engine: str
    step: int
    ts: float
    from_k: int = msgspec.field(name="from")
    to_k: int = msgspec.field(name="to")
    running: int
    limit: str


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch in which the executed K was not the configured one and nothing explains it."""

    engine: str
    started: float
    ended: float | None
    configured: dict[str, Any]
    resolved: dict[str, Any]
    executed: int
    reason: str | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck report --json` prints."""

    source: str
    window: Window | None
    buckets: list[Figures]
    total: Figures | None
    quarantined: int
    gaps: int
    frames_lost: int
    transitions: list[Transition]
    mismatches: list[Mismatch]
    notes: list[str]
