"""Requests and replies of the feed: versioned, with correlation id, deadline and an error object.

A console connects a DEALER to the station's ROUTER and a SUB to its PUB (`engine.sockets`). Everything is msgpack.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from console.feed.messages import FEED_VERSION, Series, Snapshot
from engine.records import Lane, PolicyMode, StateRecord
from store.operating_map.records import OperatingMap

Method = Literal[
    "hello",
    "snapshot",
    "series",
    "buckets",
    "bucket_detail",
    "engine_log",
    "policy_set",
    "policy_undo",
    "policy_confirm",
    "policy_history",
    "steps",
    "request_rows",
    "drill_done",
    "engine_restart",
    "alerts",
    "alert_act",
    "report",
    "balance",
    "span",
    "side",
    "export",
    "trace_state",
    "record_text",
    "traces",
    "recording_begin",
    "recording_end",
    "stop",
    "processes",
    "replay_act",
    "whatif",
    "fingerprint",
    "map_get",
    "map_put",
    "rehearsal_start",
    "rehearsal_progress",
    "rehearsal_stop",
    "demo_start",
    "demo_stop",
]
ErrorCode = Literal["version", "unknown_method", "bad_params", "deadline", "refused", "failed", "unreachable"]

CAPABILITIES: Final[tuple[str, ...]] = (
    "snapshot", "series", "engine_log", "policy_set", "engine_restart", "report", "export", "stop", "processes",
    "alerts", "alert_act", "policy_undo", "policy_confirm", "policy_history", "steps", "request_rows", "drill_done",
    "span", "side", "trace_state", "record_text", "bucket_detail", "balance", "fingerprint", "map_get", "map_put",
    "rehearsal_start", "rehearsal_progress", "rehearsal_stop", "traces", "recording_begin", "recording_end", "buckets",
    "demo_start", "demo_stop",
)  # fmt: skip


class Request(msgspec.Struct, frozen=True, kw_only=True):
    v: int = FEED_VERSION
    id: int
    method: str
    params: dict[str, Any] = {}
    deadline: float
    """Unix seconds after which nobody waits for the answer."""
    actor: str = "operator"


class ErrorObject(msgspec.Struct, frozen=True):
    code: ErrorCode
    message: str
    """What is wrong and what to do about it, one line."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    v: int = FEED_VERSION
    id: int
    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    """The msgpack of the result, typed by the method; nil on error."""
    error: ErrorObject | None = None


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `hello`: an older console is told that it is too old by `min_version`."""

    station: str
    specdeck: str
    version: int = FEED_VERSION
    min_version: int = 1
    capabilities: list[str] = msgspec.field(default_factory=lambda: list(CAPABILITIES))
    source: Literal["live", "replay"] = "live"


class PolicySet(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `policy_set`: only what is given changes. `expect` refuses a change made on an outdated picture."""

    policy: PolicyMode | None = None
    cap: int | msgspec.UnsetType | None = msgspec.UNSET
    fallback: bool | None = None
    lanes: dict[str, Lane] = {}
    """By workload; one that is not named keeps its lane."""
    confirm: float | None = None
    """Seconds within which `policy_confirm` must come, else the change is taken back; None: it stays."""
    expect: int | None = None
    why: str | None = None


class PolicyUndo(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `policy_undo`: put back what one change replaced. `version`: the policy that it made; None: the newest
    that can be undone."""

    version: int | None = None
    expect: int | None = None
    why: str | None = None


class PolicyConfirm(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `policy_confirm`: the unconfirmed policy stays. `version` refuses to confirm another than was seen."""

    version: int | None = None


class PolicyResult(msgspec.Struct, frozen=True):
    version: int
    policy: PolicyMode
    cap: int | None = None
    fallback: bool = False
    confirm_by: float | None = None
    """Unix seconds; None where nothing waits to be confirmed."""


class HistoryParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `policy_history`: the newest `limit` actions, those of one `workload` where it is named."""

    limit: int = 50
    workload: str | None = None


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One action of the operator or of the policy. `text`: the sentence that screens and lists show."""

    ts: float
    actor: str
    action: str
    workload: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    policy: int | None = None
    why: str | None = None
    numbers: dict[str, Any] | None = None
    text: str = ""
    undoable: bool = False
    """Whether `policy_undo` of this `policy` would be accepted now."""


class History(msgspec.Struct, frozen=True):
    entries: list[HistoryEntry]
    """Newest first."""


class StepsParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `steps`: the last steps of an engine that the station still holds, those after step number `after`."""

    engine: str | None = None
    """None: the engine that is ours, else the first one."""
    after: int = -1
    limit: int = 5000


class StepView(msgspec.Struct, frozen=True, array_like=True):
    """A step as its frame told it: `[step, ts, running, k_draft, limit, policy, probe]`."""

    step: int
    ts: float
    running: int
    k_draft: int
    limit: str
    policy: int
    probe: str | None = None


class Steps(msgspec.Struct, frozen=True):
    engine: str
    boot: str
    steps: list[StepView]
    """Oldest first, at most `limit` of the newest. Step numbers begin again with another `boot`."""


class RequestRowsParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `request_rows`: requests by the id that the client was answered with."""

    requests: list[str]


class RequestRow(msgspec.Struct, frozen=True, array_like=True):
    """`[step, k_asked, limit, drafted, accepted, emitted, cause]`; counts in tokens."""

    step: int
    k_asked: int
    limit: str
    drafted: int
    accepted: int
    emitted: int
    cause: str


class RequestRows(msgspec.Struct, frozen=True, kw_only=True):
    request: str
    """As it was asked for."""
    engine: str
    workload: str
    disable_speculation: bool
    lane: Lane
    rows: list[RequestRow]


class RequestRowsResult(msgspec.Struct, frozen=True):
    requests: list[RequestRows]
    """Those that are stored by now; one that is not known is left out."""


class DrillDone(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `drill_done`: the certificate of a drill, to be kept in the store and shown."""

    certificate: dict[str, Any]


class SeriesParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `series`: the last `seconds` of a bucket in `points` cells."""

    key: tuple[str | None, str | None, str | None, str | None] | None = None
    seconds: float = 900.0
    points: int = 120
    detail: bool = False
    """Points of a bucket also tell their sequences, intervals and speedups; those need its key."""


class LogParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `engine_log`: lines after byte `offset`; a negative offset counts from the end."""

    offset: int = -65536
    limit: int = 65536


class LogChunk(msgspec.Struct, frozen=True):
    path: str
    text: str
    offset: int
    """Where to go on."""


class RestartParams(msgspec.Struct, frozen=True):
    """Params of `engine_restart`: an engine that the station started."""

    engine: str


class StopParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `stop`: the station alone, leaving the engine serving, or everything."""

    everything: bool = True


class ReportParams(msgspec.Struct, frozen=True, kw_only=True):
    by: list[str] | None = None
    window: float | None = None
    """Seconds back from the last record; None for all of it."""
    at: float | None = None


class BalanceParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `balance`, answered with a `store.balance.records.Balance`: what speculation cost and saved each
    workload, and who paid for whose drafts, as of the last flush."""

    window: float | None = None
    """Seconds back from `at`; None for all that is kept row by row."""
    at: float | None = None
    """Unix seconds; None for the last step, in a replay for its clock."""
    most_rows: int | None = None
    """Only the newest steps where they have more decode rows; None for all of them."""


class SideParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `side`: figures, depths and configuration of (start, end], Unix seconds, for a comparison. None: from
    the beginning, to the end."""

    by: list[str] | None = None
    start: float | None = None
    end: float | None = None


class AlertsParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `alerts`: those that were not over `window` seconds before the last record; None for all."""

    window: float | None = None


class AlertAct(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `alert_act`: what the operator does about an alert of the judge."""

    id: int
    act: Literal["acknowledge", "snooze", "accept"]
    """`accept`: its present level is the right one from now on."""
    seconds: float = 3600.0
    """How long it is snoozed, at most `LONGEST_SNOOZE_SECONDS`."""


LONGEST_SNOOZE_SECONDS: Final = 30 * 86_400.0


class ReplayAct(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `replay_act`: move the clock of a replay. What an act does not name is not read.

    `step`: `count` engine steps onward, back where it is negative; pauses. `seek`: to `ts` (Unix seconds of the
    record), else to `share` of the span (0 to 1). `jump`: to the next mark of `kind`, to the one before where `count`
    is negative; pauses there. `loop`: over `loop`, None ends it. `speed`: seconds of record a second, None for as fast
    as it goes.
    """

    act: Literal["play", "pause", "toggle", "step", "seek", "jump", "speed", "loop"]
    count: int = 1
    ts: float | None = None
    share: float | None = None
    kind: Literal["alert", "control", "version", "gap"] = "alert"
    speed: float | None = None
    loop: tuple[float, float] | None = None


class WhatIfParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `whatif`: policies as on the command line, over the records in (start, end]; None for all of them."""

    policies: list[str]
    start: float | None = None
    end: float | None = None


class FingerprintParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `fingerprint`, answered with a `store.operating_map` Fingerprint. `engine`: None for ours."""

    engine: str | None = None


class MapPut(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `map_put`: an operating map, to be kept in the store and shown. Answered, as `map_get`, by a
    MapAnswer."""

    map: OperatingMap


class MapAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`stale`: what is not as it was when the map was made; empty: it holds, or no engine runs to tell."""

    map: OperatingMap | None
    stale: list[str] = []
    engine: str | None = None
    """That it was held against; None: none runs."""


class RehearsalStart(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `rehearsal_start`: a rehearsal on the station's own engine, as a process of its own. `plan`: the name
    of one that is built in, or an absolute path. Answered by a RehearsalView."""

    plan: str


class RehearsalStop(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `rehearsal_stop`: interrupt the rehearsal that goes on; what was measured is kept. `id`: only that
    one. Answered by a RehearsalView."""

    id: str | None = None


class DemoStart(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `demo_start`: the demo's four workloads at a gentle rate, tagged `demo-…`, to this station's engine for
    `seconds`. Answered, as `demo_stop`, which takes none, by a DemoTrafficView."""

    seconds: float = 180.0


LONGEST_DEMO_SECONDS: Final = 3600.0


class ExportParams(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    kind: Literal["duckdb", "jsonl", "compact", "parquet", "csv"] | None = None
    since: float | None = None
    """Unix seconds; only what is newer, as a JSONL trace, or a .duckdb of which older steps and rows are left out.
    None: everything."""
    state: StateRecord | None = None
    """What `trace_state` gave when a recording began: a JSONL trace then holds this and what is newer."""
    replace: bool = False
    """Take the place of a file that is there, once the export is complete."""


class ProcessView(msgspec.Struct, frozen=True):
    role: str
    pid: int | None
    alive: bool
    detail: str = ""


class ProcessesResult(msgspec.Struct, frozen=True):
    processes: list[ProcessView]
    sockets: dict[str, str]
    store: str
    engine_log: str | None


__all__ = [
    "CAPABILITIES",
    "LONGEST_DEMO_SECONDS",
    "LONGEST_SNOOZE_SECONDS",
    "AlertAct",
    "AlertsParams",
    "BalanceParams",
    "DemoStart",
    "DrillDone",
    "ErrorCode",
    "ErrorObject",
    "ExportParams",
    "FingerprintParams",
    "Hello",
    "History",
    "HistoryEntry",
    "HistoryParams",
    "LogChunk",
    "LogParams",
    "MapAnswer",
    "MapPut",
    "Method",
    "PolicyConfirm",
    "PolicyResult",
    "PolicySet",
    "PolicyUndo",
    "ProcessView",
    "ProcessesResult",
    "RehearsalStart",
    "RehearsalStop",
    "ReplayAct",
    "Reply",
    "ReportParams",
    "Request",
    "RequestRow",
    "RequestRows",
    "RequestRowsParams",
    "RequestRowsResult",
    "Series",
    "SeriesParams",
    "SideParams",
    "Snapshot",
    "StepView",
    "Steps",
    "StepsParams",
    "StopParams",
    "WhatIfParams",
]
