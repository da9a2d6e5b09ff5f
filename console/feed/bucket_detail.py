"""What the Bucket screen shows beside the series: what each K brought, the formula, levels, the worst sequences."""

from __future__ import annotations

import msgspec

from store.figures import BucketKey, SpeedupState

KeyParts = tuple[str | None, str | None, str | None, str | None]


class BucketDetailParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `bucket_detail`, answered with a BucketDetail."""

    key: KeyParts


class MeasuredK(msgspec.Struct, frozen=True, array_like=True):
    """Realised speedup (experienced) of the rows that were asked for K."""

    k: int
    speedup: float | None
    low: float | None
    high: float | None
    state: SpeedupState
    rows: int
    batch: float
    """Mean decode rows of the steps that they were in."""


class WorstRow(msgspec.Struct, frozen=True, array_like=True):
    """A row as in a trace; `ts`: end of its step, Unix seconds."""

    ts: float
    k_asked: int
    limit: str
    drafted: int
    accepted: int
    emitted: int
    cause: str


class WorstSequence(msgspec.Struct, frozen=True, kw_only=True):
    """`name`: vLLM's request id, or the name in the trace. `rows`: its last decode rows, oldest first."""

    name: str
    steps: int
    """Draft steps in the stretch that was looked at."""
    drafted: int
    accepted: int
    alpha: float
    rows: list[WorstRow]


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """What acceptance is held against: fractions at `depth`, which is comparable across K where α is not."""

    depth: int
    baseline: float | None = None
    """Of the last 7 days."""
    baseline_sequences: int | None = None
    pinned: float | None = None
    """Of the first week of this version, or of when the operator accepted it."""
    pinned_sequences: int | None = None


class MarginalGain(msgspec.Struct, frozen=True, kw_only=True):
    """What the workload's own K buys: tokens/s with its drafts over tokens/s without, the others as they are."""

    ts: float
    k: int
    gain: float
    low: float | None = None
    high: float | None = None
    sequences: int = 0


class BucketDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What is not known is None or empty; `absent` then says why, by the field's name."""

    key: BucketKey
    since: float | None = None
    until: float | None = None
    """The rows that were looked at, Unix seconds."""
    batch: float | None = None
    """Mean decode rows of a step, lately."""
    cost: float | None = None
    """c: time of a draft pass over the time of a target pass, measured, at this batch."""
    theory: list[float] = []
    """S(α, K, c) for K = 0, 1, … with the conditional acceptance of these rows."""
    acceptance: float | None = None
    """That acceptance."""
    measured: list[MeasuredK] = []
    worst: list[WorstSequence] = []
    """Lowest acceptance first."""
    level: Level | None = None
    marginal: MarginalGain | None = None
    absent: dict[str, str] = {}
