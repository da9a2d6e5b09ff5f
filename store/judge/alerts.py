"""What the judge says: alerts, notes and the state of each bucket. Loads neither numpy nor DuckDB."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from store.figures import BucketKey

Kind = Literal[
    "drift", "shift", "speedup_floor", "failing_workload", "policy_mismatch", "telemetry_loss", "engine_down",
    "quarantine", "clock_step", "map_stale",
]  # fmt: skip
Severity = Literal["info", "warn", "critical"]
State = Literal["pending", "firing", "resolved"]

ACCEPTANCE: Final[tuple[Kind, ...]] = ("drift", "shift")

CauseKind = Literal[
    "version", "configuration", "control", "shift", "load", "draft_length", "mix", "gradual", "post_resume",
    "not_fixed", "accepted", "gone",
]  # fmt: skip

Evidence = dict[str, float | int | str | None]


class Cause(msgspec.Struct, frozen=True):
    """What changed, or how. `ts`: when, Unix seconds; None where it is no moment."""

    kind: CauseKind
    text: str
    ts: float | None = None


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong in one place. Times are record time, Unix seconds; `changes` hands out newer versions.

    A pending one that was never confirmed ends as resolved with `started` None: it never fired, and is no history.
    """

    id: int
    kind: Kind
    severity: Severity
    engine: str
    bucket: BucketKey | None
    """None for alerts of a whole engine."""
    state: State
    pending_since: float
    """End of the first window that showed it, or the moment of the event."""
    started: float | None = None
    """The same moment, once it fires."""
    confirmed: float | None = None
    """When it fired: the end of the window that confirmed it."""
    ended: float | None = None
    window_seconds: float | None = None
    """Length of the windows it is judged in; None for events."""
    evidence: Evidence = {}
    """Plain numbers and words. Falls and bounds are in points, rates are fractions."""
    causes: list[Cause] = []
    acknowledged: str | None = None
    """By whom."""
    acknowledged_at: float | None = None
    snoozed_until: float | None = None

    @property
    def active(self) -> bool:
        return self.state != "resolved"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a reader of the figures should know and nobody has to act on."""

    kind: Literal["mix", "post_resume"]
    ts: float
    text: str
    engine: str | None = None
    bucket: BucketKey | None = None
    evidence: Evidence = {}


class Changes(msgspec.Struct, frozen=True):
    """What is new since the last time: the present version of each alert that changed, in the order of their ids."""

    alerts: list[Alert]
    notes: list[Note]

    def __bool__(self) -> bool:
        return bool(self.alerts or self.notes)

    def followed_by(self, later: Changes) -> Changes:
        """Both together: of each alert the last version."""
        alerts = {alert.id: alert for alert in (*self.alerts, *later.alerts)}
        return Changes([alerts[number] for number in sorted(alerts)], [*self.notes, *later.notes])


class BucketView(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge knows of a bucket, for the screen. Levels are acceptance at `depth`, as fractions."""

    engine: str
    bucket: BucketKey
    state: Literal["ok", "learning", "blind"]
    """`learning`: no reference yet. `blind`: there was one, but now nothing is drafted, or at no depth it knows."""
    depth: int | None
    baseline: float | None
    """Level of the 7-day moving baseline, once it is usable."""
    baseline_sequences: int | None
    pinned: float | None
    pinned_sequences: int | None
    probe_wanted: bool
    """Only a probe can tell how acceptance stands."""
    alert: int | None
    """The acceptance alert that is pending or firing."""
