"""What was asked of a station in words, and the command that does the same from a shell. Pure."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from console.app.policy.words import cap_words, fallback_words, lane_words, mode_words
from console.feed.protocol import (
    AlertAct,
    DemoStart,
    ExportParams,
    HistoryEntry,
    Method,
    PolicyConfirm,
    PolicySet,
    PolicyUndo,
    RehearsalStart,
    RestartParams,
)
from console.feed.traces import RecordingBegin, RecordingEnd
from engine.policy import describe
from engine.records import PolicyMode

_ALERT_ACTS = {"alert_acknowledge": "--acknowledge", "alert_snooze": "--snooze", "alert_accept": "--accept"}


def asked_words(method: Method, params: msgspec.Struct | None) -> str:
    """What a request asks for."""
    if isinstance(params, PolicySet):
        return ", ".join(_set_words(params)) or "the policy as it is"
    if isinstance(params, PolicyUndo):
        return "undo the newest change" if params.version is None else f"undo policy {params.version}"
    if isinstance(params, PolicyConfirm):
        return "confirm what waits for it"
    if isinstance(params, AlertAct):
        return f"{params.act} alert {params.id}"
    if isinstance(params, RestartParams):
        return f"restart engine {params.engine}"
    if isinstance(params, RehearsalStart):
        return f"rehearse plan {params.plan}"
    if isinstance(params, ExportParams):
        return f"export to {params.path}"
    if isinstance(params, RecordingBegin):
        return f"record into {params.path}"
    if isinstance(params, RecordingEnd):
        return "end the recording" if params.path is None else f"end the recording, into {params.path}"
    if isinstance(params, DemoStart):
        return f"demo traffic for {params.seconds:.0f} s"
    return method.replace("_", " ")


def _set_words(params: PolicySet) -> list[str]:
    words = [f"mode {mode_words(params.policy)}"] if params.policy is not None else []
    if params.cap is not msgspec.UNSET:
        words.append(cap_words(params.cap))
    if params.fallback is not None:
        words.append(fallback_words(params.fallback))
    words += [lane_words(workload, lane) for workload, lane in params.lanes.items()]
    return [*words, f"to be confirmed within {params.confirm:.0f} s"] if params.confirm is not None else words


def command_of(method: Method, params: msgspec.Struct | None) -> str | None:
    """The same from a shell; None where no command does it."""
    if isinstance(params, PolicySet):
        return _set_command(params)
    if isinstance(params, PolicyUndo):
        return _command("policy", "undo", *([] if params.version is None else [str(params.version)]))
    if isinstance(params, PolicyConfirm):
        return _command("policy", "confirm", *([] if params.version is None else [str(params.version)]))
    if isinstance(params, AlertAct):
        span = ["--for", f"{params.seconds:.0f}s"] if params.act == "snooze" else []
        return _command("alerts", f"--{params.act}", str(params.id), *span)
    if isinstance(params, RehearsalStart):
        return _command("rehearse", params.plan)
    if isinstance(params, ExportParams) and params.since is None:
        return _command("export", *(["--kind", params.kind] if params.kind is not None else []), params.path)
    if isinstance(params, RecordingBegin) and not params.replace:
        span = ["--for", f"{params.seconds:.0f}s"] if params.seconds is not None else []
        return _command("trace", "record", "--detach", *span, params.path)
    if isinstance(params, RecordingEnd) and not params.replace:
        return _command("trace", "end", *(["--into", params.path] if params.path is not None else []))
    return None


def command_of_entry(entry: HistoryEntry) -> str | None:
    """The command that does what a line of the history says; None where none does, or too little is known."""
    after, numbers = entry.after or {}, entry.numbers or {}
    if entry.action == "undo" and isinstance(numbers.get("undone"), int):
        return _command("policy", "undo", str(numbers["undone"]))
    if entry.action == "confirm":
        return _command("policy", "confirm")
    if entry.action in _ALERT_ACTS and isinstance(after.get("alert"), int):
        return _command("alerts", _ALERT_ACTS[entry.action], str(after["alert"]))
    if entry.action == "rehearsal_start" and isinstance(after.get("plan"), str):
        return _command("rehearse", after["plan"])
    params = _set_of(entry, after, numbers)
    return None if params is None else _set_command(params)


def _set_of(entry: HistoryEntry, after: dict[str, Any], numbers: dict[str, Any]) -> PolicySet | None:
    by = numbers.get("confirm_by")
    confirm = round(by - entry.ts) if isinstance(by, int | float) and by > entry.ts else None
    try:
        if entry.action == "mode":
            return PolicySet(policy=msgspec.convert(after, PolicyMode), confirm=confirm)
        if entry.action == "cap":
            return PolicySet(cap=msgspec.convert(after["cap"], int | None), confirm=confirm)
        if entry.action == "fallback" and entry.workload is None:
            return PolicySet(fallback=bool(after["fallback"]), confirm=confirm)
        if entry.action == "lane" and entry.workload is not None:
            return msgspec.convert({"lanes": {entry.workload: after["lane"]}, "confirm": confirm}, PolicySet)
    except (msgspec.ValidationError, KeyError):
        pass  # of a station of another version
    return None


def _set_command(params: PolicySet) -> str | None:
    words: list[str] = []
    if params.policy is not None:
        try:
            words.append(describe(params.policy))
        except ValueError:
            return None
    if params.cap is not msgspec.UNSET:
        words += ["--cap", "none" if params.cap is None else str(params.cap)]
    if params.fallback is not None:
        words += ["--fallback", "on" if params.fallback else "off"]
    for workload, lane in params.lanes.items():
        words += ["--lane", f"{workload}={lane}"]
    if params.confirm is not None:
        words += ["--confirm", f"{params.confirm:.0f}s"]
    if params.why is not None:
        words += ["--why", params.why]
    return _command("policy", "set", *words) if words else None


def _command(*words: str) -> str:
    return shlex.join(("specdeck", *words))
