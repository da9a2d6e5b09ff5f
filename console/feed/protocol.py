"""Requests and replies of the feed: versioned, with correlation id, deadline and an error object.

A console connects a DEALER to the station's ROUTER and a SUB to its PUB (`engine.sockets`). Everything is msgpack.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from console.feed.messages import FEED_VERSION, Series, Snapshot
from engine.records import PolicyMode

Method = Literal[
    "hello", "snapshot", "series", "engine_log", "policy_set", "engine_restart", "report", "export", "stop", "processes"
]
ErrorCode = Literal["version", "unknown_method", "bad_params", "deadline", "refused", "failed", "unreachable"]

CAPABILITIES: Final[tuple[str, ...]] = (
    "snapshot", "series", "engine_log", "policy_set", "engine_restart", "report", "export", "stop", "processes",
    "alerts", "alert_act",
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
    expect: int | None = None
    why: str | None = None


class PolicyResult(msgspec.Struct, frozen=True):
    version: int
    policy: PolicyMode


class SeriesParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `series`: the last `seconds` of a bucket in `points` cells."""

    key: tuple[str | None, str | None, str | None, str | None] | None = None
    seconds: float = 900.0
    points: int = 120


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


class ExportParams(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    kind: Literal["duckdb", "jsonl", "parquet", "csv"] | None = None
    since: float | None = None
    """Unix seconds; only what is newer, as a JSONL trace, or a .duckdb of which older steps and rows are left out.
    None: everything."""


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
    "LONGEST_SNOOZE_SECONDS",
    "AlertAct",
    "AlertsParams",
    "ErrorCode",
    "ErrorObject",
    "ExportParams",
    "Hello",
    "LogChunk",
    "LogParams",
    "Method",
    "PolicyResult",
    "PolicySet",
    "ProcessView",
    "ProcessesResult",
    "Reply",
    "ReportParams",
    "Request",
    "Series",
    "SeriesParams",
    "Snapshot",
    "StopParams",
]
