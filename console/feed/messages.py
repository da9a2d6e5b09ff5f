"""The feed's snapshot: one complete picture of the station, published 4 times a second and small enough to be whole."""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.records import Lane, PolicyMode
from store.figures import BucketKey, Figures, SeriesPoint

FEED_VERSION = 1

PhaseState = Literal["pending", "running", "done", "failed"]
EngineState = Literal["starting", "serving", "restarting", "stopped", "lost", "failed"]


class Phase(msgspec.Struct, frozen=True):
    """One step of the start-up, e.g. `model`, `engine process`, `weights`, `health`."""

    name: str
    state: PhaseState
    seconds: float | None = None
    """How long it took, or has been running."""
    detail: str = ""


class EngineView(msgspec.Struct, frozen=True, kw_only=True):
    """One engine as the station sees it. What it has not said, or what can't be seen of it from outside, is None, of
    names empty."""

    engine: str
    owned: bool
    """specdeck started it and may restart it."""
    state: EngineState
    detail: str = ""
    """One line: why it is not serving, or when the next restart is."""
    pid: int | None = None
    started: float | None = None
    restarts: int = 0
    phases: list[Phase] = []
    target: str = ""
    drafter: str = ""
    method: str = ""
    vllm: str = ""
    device: str = ""
    max_k: int | None = None
    max_num_seqs: int | None = None
    batch_k: Literal["free", "fixed"] | None = None
    async_scheduling: bool | None = None
    data_parallel_size: int | None = None
    max_model_len: int | None = None
    configured: PolicyMode | None = None
    resolved: PolicyMode | None = None
    executed_k: int | None = None
    executed_limit: str | None = None
    """The policy term that set the executed K."""
    mismatch: str | None = None
    """Why executed differs from configured, when it does; None when they agree."""
    unexplained: bool = False
    """It differs, and no limit and no cause explains it."""
    running: int | None = None
    waiting: int | None = None
    policy_sent: int | None = None
    policy_applied: int | None = None
    policy_error: str | None = None
    reverted: float | None = None
    """Since when the engine itself has taken back an unconfirmed raise, Unix seconds."""
    orphaned: float | None = None
    """Since when the engine leaves out adaptive's own K because it heard of no station, Unix seconds."""
    last_frame_age: float | None = None
    """Seconds since anything was heard of it."""


class GatewayView(msgspec.Struct, frozen=True):
    url: str
    state: Literal["starting", "serving", "down"]
    pid: int | None = None
    requests: int = 0
    errors: int = 0
    detail: str = ""
    unavailable: int = 0
    """Requests that found no engine, as while one starts; they were answered 503 with a Retry-After."""
    refused: int = 0
    """Requests that were answered 400 here."""
    hints_seen: int = 0
    """`disable_speculation` was asked for, in any of its places."""
    hints_rejected: int = 0
    """A malformed `disable_speculation`; among `refused`."""
    unsupported: int = 0
    """`min_p` or `logit_bias` and no engine to take them; among `refused`."""
    vanilla_engine: bool = False
    """Whether the vanilla lane has an engine of its own; else it is K = 0 in the same engine."""
    vanilla_ok: bool | None = None
    """Whether that engine listens; None where there is none."""
    vanilla_requests: int = 0
    """Requests that it was given."""
    vanilla_spilled: int = 0
    """Requests of the lane that went to the other engine at K = 0, since the vanilla one was away."""


class WorkloadView(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one workload: the operator's lane, the controller's K and fallback, and why."""

    name: str
    lane: Lane = "speculative"
    k: int | None = None
    """Adaptive's K of the workload; None where it leaves it alone."""
    fallback: bool = False
    """Tier 2 has turned speculation off for it."""
    since: float | None = None
    """Since when the fallback holds, Unix seconds."""
    next_try: float | None = None
    """When a recovery probe is due, Unix seconds; None where none is."""
    running: int = 0
    """Sequences of it now."""
    advice: str | None = None
    """What the controller would do, where it only advises."""
    why: str | None = None
    """The last decision about it, one sentence."""


class UnconfirmedView(msgspec.Struct, frozen=True, kw_only=True):
    """A raise that waits to be confirmed."""

    confirm_by: float
    """Unix seconds."""
    reverts_to: PolicyMode
    cap: int | None = None
    fallback: bool = False


class CertificateView(msgspec.Struct, frozen=True, kw_only=True):
    """The last drill."""

    ts: float
    passed: bool
    model_version: str
    stale: str | None = None
    """Why it says nothing about what serves now; None while it does."""
    text: str = ""
    """One sentence."""


class CalibrationView(msgspec.Struct, frozen=True, kw_only=True):
    """How far the first measurements of an engine's step times are."""

    engine: str
    state: Literal["waiting", "running", "done", "skipped"]
    text: str = ""


class StoreView(msgspec.Struct, frozen=True):
    path: str
    recording: bool
    rows: int
    """Sequence-steps stored."""
    bytes: int
    error: str | None = None
    """Why recording stopped, e.g. a full disk."""


class LossView(msgspec.Struct, frozen=True):
    """Telemetry that is missing or was set aside since the store began."""

    gaps: int = 0
    frames_lost: int = 0
    quarantined: int = 0
    unattributed: int = 0
    broken_messages: int = 0


class BucketView(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the bucket table. `spark`: α over the last 15 minutes, oldest first, None where nothing was drafted."""

    key: BucketKey
    figures: Figures
    window_label: str
    """The window of the figures as shown, e.g. `5 min`."""
    spark: list[float | None] = []
    k_mix: list[float] = []
    """Share of decode rows at k_asked 0, 1, 2, …"""
    last_seen: float = 0.0


class AlertView(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as one line. Outages, losses and mismatches, judged by the station."""

    kind: str
    severity: Literal["info", "warn", "critical"]
    state: Literal["pending", "firing", "resolved"]
    text: str
    started: float
    ended: float | None = None
    bucket: BucketKey | None = None
    id: int | None = None
    """Number of an alert of the judge, by which it is acknowledged; None for plain facts."""
    acknowledged: str | None = None
    snoozed_until: float | None = None
    cause: str | None = None
    """Of a plain fact: what tells it from others of its kind that began at the same moment."""


class ActView(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an operator did, or that the station took back. `text`: a sentence with its actor."""

    ts: float
    actor: str
    action: str
    text: str
    workload: str | None = None
    policy: int | None = None
    """The version that it made, where it changed the policy."""


class Event(msgspec.Struct, frozen=True):
    """A line of the recent past: control actions, restarts, gaps."""

    ts: float
    kind: str
    text: str


class ReplayMark(msgspec.Struct, frozen=True):
    """Something on the time axis of a replay that one may want to go to."""

    ts: float
    kind: Literal["alert", "control", "version", "gap"]
    text: str = ""


class ReplayView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a replay stands. Times are Unix seconds of the record; `Snapshot.ts` is its virtual clock."""

    path: str
    start: float
    end: float
    """Start of the first step, end of the last record that was taken in."""
    complete: bool
    """Whether the whole trace was taken in; until then `end` grows."""
    loaded_share: float = 1.0
    """How much of the file was taken in, 0 to 1."""
    playing: bool = False
    speed: float | None = 1.0
    """Seconds of record a second; None for as fast as it goes."""
    loop: tuple[float, float] | None = None
    marks: list[ReplayMark] = []
    """In the order of time; of each kind at most one in every 200th of the span."""
    position: str = ""
    """The last engine step before the clock, e.g. `step 17 of e0`."""
    notes: list[str] = []
    """What was odd about the trace."""


class MapSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The operating map that the station holds. `stale`: what is not as it was when it was made; empty: it holds."""

    id: str
    ts: float
    plan: str
    stale: list[str] = []
    schedule: list[tuple[int, int, int]] | None = None


class RehearsalView(msgspec.Struct, frozen=True, kw_only=True):
    """A rehearsal that is going on, as it tells of itself; also params of `rehearsal_progress`."""

    id: str
    plan: str
    state: Literal["starting", "running", "fallback_test", "over", "stopped", "failed"]
    pass_number: int = 0
    passes: int = 0
    arm: str = ""
    phase: str = ""
    seconds_left: float | None = None
    """Of the whole rehearsal."""
    sent: int = 0
    done: int = 0
    errors: int = 0
    note: str = ""
    """One line about trouble or what is waited for; at the end what it came to."""
    folder: str = ""
    pid: int | None = None
    """The process to interrupt."""


class RecordingView(msgspec.Struct, frozen=True, kw_only=True):
    """A recording of the station's. Nothing is written before its end: until then its rows are in the store."""

    id: str
    path: str
    state: Literal["on", "writing", "written"]
    actor: str
    """Who began it."""
    began: float
    since: float
    """From when on it holds what was recorded: where the judge had come to, at most half a minute before it began."""
    seconds: float | None
    """How long it was asked to be; None: until it is ended."""
    until: float
    """When it ends by itself."""
    rows: int
    """Sequence-steps."""
    bytes: int
    """Of the file; until it is written by what such rows take on average."""
    ended: float | None = None
    note: str = ""
    """Why it could not be written (it then goes on), or what is odd about what was."""


class DemoTrafficView(msgspec.Struct, frozen=True, kw_only=True):
    """The demo's traffic on this station's engine: as it goes, and its end for a while."""

    state: Literal["waiting", "running", "over", "stopped", "failed"]
    """`waiting`: for the engine, or for its calibration."""
    phase: str = ""
    seconds_left: float | None = None
    sent: int = 0
    done: int = 0
    errors: int = 0
    note: str = ""
    """One line about trouble, or why it failed."""
    pid: int | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    v: int = FEED_VERSION
    station: str
    """Unique per station process."""
    number: int
    ts: float
    started: float
    source: Literal["live", "replay"] = "live"
    replay: ReplayView | None = None
    """Of a replay alone."""
    policy_version: int | None
    policy: PolicyMode | None
    """None, as its version, of a station that only observes: what that engine was told is not known here."""
    cap: int | None = None
    fallback: bool = False
    workloads: list[WorkloadView] = []
    unconfirmed: UnconfirmedView | None = None
    certificate: CertificateView | None = None
    """None: no drill was ever made."""
    calibration: CalibrationView | None = None
    engines: list[EngineView]
    gateway: GatewayView | None
    store: StoreView
    loss: LossView
    total: Figures | None
    buckets: list[BucketView]
    alerts: list[AlertView] = []
    events: list[Event] = []
    tokens_per_second: float | None = None
    """Over the last 10 s, all engines: the status line's figure."""
    running: int | None = None
    waiting: int | None = None
    """Sequences of all engines that tell; None where none does."""
    map: MapSummary | None = None
    rehearsal: RehearsalView | None = None
    """The one that goes on, or the last one for a while after its end."""
    acts: list[ActView] = []
    """What was done within the last minute, oldest first: each console says what others did. Empty of a replay."""
    recording: RecordingView | None = None
    """The same of a recording into a trace file."""
    demo: DemoTrafficView | None = None
    """The demo's traffic, where it goes on or ended lately."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    key: BucketKey | None
    """None: all buckets pooled."""
    cell_seconds: float
    points: list[SeriesPoint]
    marks: list[Event]
    """Controls, restarts, gaps inside the range."""
