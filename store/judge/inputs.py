"""What the judge is fed: closed 10-s cells, and events. All times are record time, Unix seconds."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SequenceCells:
    """One closed 10-s cell: an entry for each (bucket, sequence) in it, each pair once, in any order (ascending is
    fastest). Arrays of one length n; `reached` and `matched` are n × M, M the deepest draft length in the cell.

    Probe rows and post-resume draft steps are in neither `reached` nor `matched`.
    """

    ts: float
    """Start of the cell, a multiple of 10."""
    bucket: Ints
    """The store's number of the bucket."""
    sequence: Ints
    """The store's number of the sequence, 0 or more."""
    decode_rows: Ints
    reached: npt.NDArray[np.integer]
    """For m = 1 … M: draft steps with m or more drafted."""
    matched: npt.NDArray[np.integer]
    """Over these: Σ min(accepted, m)."""
    resumed_steps: Ints
    """Post-resume draft steps."""
    resumed_ratio: Floats
    """Over these: Σ accepted/drafted."""


class EngineLoad(msgspec.Struct, frozen=True):
    """How one engine ran in a cell."""

    engine: str
    running: float
    """Mean number of running sequences over its steps."""
    executed_k: float
    """Mean executed K over its steps."""
    calibration_error: float = 0.0
    """Standard error of its vanilla-equivalent, relative."""


@dataclass(frozen=True)
class LoadCells:
    """One closed 10-s cell: an entry for each bucket with decode rows. Arrays of one length."""

    ts: float
    bucket: Ints
    gained_ms: Floats
    """Σ (e·v + p), what vanilla would have needed; NaN where nothing is known of vanilla."""
    taken_ms: Floats
    """Σ t, what it took."""
    drafted: Ints
    accepted: Ints
    decode_rows: Ints
    engines: tuple[EngineLoad, ...]


class EngineStarted(msgspec.Struct, frozen=True, tag=True):
    """An engine announced itself. Another version or configuration than before is what an alert may name."""

    engine: str
    ts: float
    model_version: str
    configuration: str = ""
    """Everything else that can move acceptance, in one string."""


class EngineDown(msgspec.Struct, frozen=True, tag=True):
    engine: str
    ts: float
    why: str = ""


class EngineUp(msgspec.Struct, frozen=True, tag=True):
    engine: str
    ts: float


class ControlDone(msgspec.Struct, frozen=True, tag=True):
    """An action of the operator or of the policy."""

    ts: float
    actor: str
    action: str
    workload: str | None = None
    text: str = ""
    """What it changed, in a few words."""


class TelemetryLost(msgspec.Struct, frozen=True, tag=True):
    """Nothing is known of a stretch of an engine, from `since` (None: unknown) to `ts`."""

    engine: str
    ts: float
    since: float | None
    frames_lost: int
    reason: str | None = None


class RowsQuarantined(msgspec.Struct, frozen=True, tag=True):
    engine: str
    ts: float
    rows: int


class PolicyMismatch(msgspec.Struct, frozen=True, tag=True):
    """The executed K left what was configured at `started`; told again with `ended` once it came back. It may be told
    again and again while it lasts."""

    engine: str
    started: float
    ended: float | None
    configured: str
    resolved: str
    executed: int
    reason: str | None = None


class PolicyKept(msgspec.Struct, frozen=True, tag=True):
    """An engine executes what is configured, since `ts` at the latest."""

    engine: str
    ts: float


class MapStale(msgspec.Struct, frozen=True, tag=True):
    """An engine runs that the operating map is not of. It may be told again while it lasts."""

    engine: str
    ts: float
    map: str
    """Its id."""
    differs: str
    """What is not as it was when the map was made."""


class MapHolds(msgspec.Struct, frozen=True, tag=True):
    """The operating map is of what an engine runs, or the engine has no use for one."""

    engine: str
    ts: float


class ClockStep(msgspec.Struct, frozen=True, tag=True):
    """The wall clock of an engine jumped by `seconds`."""

    engine: str
    ts: float
    seconds: float


Event = (
    EngineStarted
    | EngineDown
    | EngineUp
    | ControlDone
    | TelemetryLost
    | RowsQuarantined
    | PolicyMismatch
    | PolicyKept
    | MapStale
    | MapHolds
    | ClockStep
)
