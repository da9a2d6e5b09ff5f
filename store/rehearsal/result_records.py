"""What a rehearsal came to, in figures, as it is written, sent and shown. Absent is None, never 0.

Three names that are never mixed: *gain* is busy tokens/s over the baseline's; *speedup* here is the equal-arrival one,
queueing included; the realised speedup of reports is neither and does not occur.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from store.operating_map.fingerprint import Fingerprint
from store.rehearsal.plan import Plan
from store.rehearsal.records import FallbackVerdict


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure over repeats. Bounds at 95 % by Student's t over repeats; None where there is one repeat alone."""

    value: float
    low: float | None = None
    high: float | None = None
    by_repeat: list[tuple[int, float]] = []
    """Each repeat, from 1, and its figure."""


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """Nearest rank, in seconds, over `n` requests of all repeats together."""

    n: int
    p50: float
    p90: float
    p99: float


class Drafting(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine's records show of drafting (`store.figures`), all repeats together."""

    draft_steps: int
    decode_rows: int
    alpha: float | None
    alpha_low: float | None
    alpha_high: float | None
    mean_acceptance_length: float | None
    waste_ratio: float | None
    k_mix: dict[str, int]
    """Decode rows by the K that they were asked for."""
    few: bool


class PartFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One arm in one phase (None: the whole pass) for one workload (None: all of them). Times in seconds.

    Latency counts from the intended send time. `e2e` and `tpot` are of requests answered whole, `ttft` of those that
    got a first token, `waiting` of those that the engine began.
    """

    arm: str
    phase: int | None
    workload: str | None
    repeats: int
    requests: int
    errors: dict[str, int] = {}
    """Requests not answered whole, by kind."""
    misses: int
    """Errors, and answers that broke a deadline of their workload."""
    output_tokens: int
    """Of the requests answered whole."""
    throughput: Estimate | None = None
    """Completion throughput: their tokens/s, from the phase's start to its end or the last answer to the requests that
    were meant for it, whichever is later."""
    goodput: Estimate | None = None
    """The same of requests that are no miss."""
    busy: Estimate | None = None
    """Busy tokens/s: tokens committed over the time of the steps that ended in the phase (of a workload: of the steps
    that held it)."""
    mean_running: float | None = None
    """Running sequences, over the time of those steps."""
    e2e: Percentiles | None = None
    ttft: Percentiles | None = None
    tpot: Percentiles | None = None
    waiting: Percentiles | None = None
    drafting: Drafting | None = None
    speedup: Estimate | None = None
    """Equal-arrival speedup: Σ E2E of the baseline over Σ E2E of this arm, over the requests that both answered."""
    gain: Estimate | None = None
    """Busy tokens/s over the baseline's in the same repeat."""
    goodput_gain: Estimate | None = None


class PhaseSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A phase of the plan. `label`: its name, with its place where the name occurs twice. Seconds of a pass."""

    label: str
    start: float
    end: float


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds by which the load generator sent requests too late. It is in every latency."""

    p99: float
    max: float


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A pass that counts. `others`: share of the engine's sequence-steps that served somebody else."""

    number: int
    arm: str
    repeat: int
    stage: Literal["survey", "comparison"]
    lag: Lag | None
    others: float = 0.0
    frames_lost: int = 0


class SpecTax(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine pays for having a drafter while it drafts nothing: K = 0 against an engine without speculation."""

    step_time: Estimate | None
    """Step time of K = 0 over that without, at equal running sequences, steps that computed no prompt."""
    busy: Estimate | None
    """Busy tokens/s of K = 0 over that without, over the whole pass."""


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """An arm that changes K against the fixed arms in one phase (None: the whole pass). `best` and `worst` of them were
    chosen on the survey, the ratios are of the comparison."""

    arm: str
    phase: int | None
    best: str
    against_best: Estimate
    """Tokens/s over the best fixed arm's with as many sequences running."""
    holds: bool | None
    """Whether that is at least 0.93 and its interval reaches 0.97; None where one repeat promises nothing."""
    busy: Estimate | None
    """Busy tokens/s over the best fixed arm's, at whatever load each had: higher, too, for one that is slow."""
    e2e: Estimate | None
    """Equal-arrival speedup over the best fixed arm."""
    worst: str | None = None
    against_worst: Estimate | None = None
    """Tokens/s over the worst fixed arm's with as many sequences running."""


class RehearsalResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that follows from a rehearsal's folder. `warnings`: what makes figures doubtful; `unknown`: what this
    rehearsal can't tell."""

    id: str
    plan: Plan
    host: Literal["own", "station"]
    scale: float
    started: float
    ended: float | None
    fingerprint: Fingerprint
    baseline: str
    arms: list[str]
    """Those that came to a pass, in the order of the plan."""
    phases: list[PhaseSpan]
    passes: list[Made]
    passes_planned: int
    parts: list[PartFigures]
    spec_tax: SpecTax | None
    holding: list[Holding]
    proposal: list[tuple[int, int, int]] | None
    fallback: FallbackVerdict | None
    warnings: list[str] = []
    unknown: list[str] = []
    notes: list[str] = []

    def part(self, arm: str, phase: int | None = None, workload: str | None = None) -> PartFigures | None:
        return next((p for p in self.parts if (p.arm, p.phase, p.workload) == (arm, phase, workload)), None)
