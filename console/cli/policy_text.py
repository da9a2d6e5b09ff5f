"""The words of `specdeck policy get` and of what the other policy commands print, as the Policy screen has them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from console.cli.figures_text import printable
from console.feed.messages import EngineView, Snapshot, UnconfirmedView, WorkloadView
from console.feed.protocol import PolicyResult
from engine.policy import describe
from engine.records import PolicyMode


def as_object(snapshot: Snapshot) -> dict[str, Any]:
    """What `get --json` prints."""
    return {
        "version": snapshot.policy_version,
        "mode": _words(snapshot.policy),
        "policy": snapshot.policy,
        "cap": snapshot.cap,
        "fallback": snapshot.fallback,
        "lanes": {view.name: view.lane for view in snapshot.workloads if view.lane != "speculative"},
        "workloads": snapshot.workloads,
        "unconfirmed": snapshot.unconfirmed,
        "engines": [
            {
                "engine": view.engine,
                "state": view.state,
                "configured": view.configured,
                "resolved": view.resolved,
                "executed_k": view.executed_k,
                "executed_limit": view.executed_limit,
                "mismatch": view.mismatch,
                "policy_sent": view.policy_sent,
                "policy_applied": view.policy_applied,
                "policy_error": view.policy_error,
                "reverted": view.reverted,
                "orphaned": view.orphaned,
            }
            for view in snapshot.engines
        ],
    }


def as_text(snapshot: Snapshot) -> str:
    if snapshot.policy is None:
        return "policy     unknown: this station only observes"
    lines = [
        f"policy     version {snapshot.policy_version}: {describe(snapshot.policy)}",
        f"cap        {_cap(snapshot.cap)}",
        f"fallback   {_switch(snapshot.fallback)}",
    ]
    if snapshot.unconfirmed is not None:
        lines.append(f"waits      {_waits(snapshot.unconfirmed, snapshot.ts)}")
    lines += [_workload_line(view) for view in snapshot.workloads]
    for engine in snapshot.engines:
        lines += _engine_lines(engine)
    return "\n".join(lines)


def result_text(result: PolicyResult) -> str:
    """The policy that holds after an action, one line."""
    until = "" if result.confirm_by is None else f", to be confirmed by {_moment(result.confirm_by)}"
    return (
        f"version {result.version}: {describe(result.policy)}, cap {_cap(result.cap)}, "
        f"fallback {_switch(result.fallback)}{until}"
    )


def _workload_line(view: WorkloadView) -> str:
    k = "" if view.k is None else f", K {view.k}"
    fallback = ", fallback: its drafts bring nothing" if view.fallback else ""
    if view.next_try is not None:
        fallback += f", tried again at {_moment(view.next_try)}"
    advice = f", advice: {view.advice}" if view.advice is not None else ""
    why = f" ({printable(view.why, 200)})" if view.why is not None else ""
    name = printable(view.name)
    return f"workload   {name}: {view.lane} lane{k}{fallback}{advice}, {view.running} running{why}"


def _engine_lines(view: EngineView) -> list[str]:
    executed = "—" if view.executed_k is None else f"K {view.executed_k} ({view.executed_limit})"
    why = f": {view.mismatch}" if view.mismatch else ""
    lines = [
        f"engine {view.engine:<3} {view.state}: configured {_words(view.configured) or '—'} · "
        f"resolved {_words(view.resolved) or '—'} · executed {executed}{why}",
        f"           policy sent {view.policy_sent}, applied {view.policy_applied}",
    ]
    if view.resolved is not None and view.resolved.reason:
        lines.append(f"           resolved otherwise: {view.resolved.reason}")
    if view.policy_error:
        lines.append(f"           refused the last policy: {view.policy_error}")
    if view.reverted is not None:
        lines.append(f"           has taken back the unconfirmed change since {_moment(view.reverted)}")
    if view.orphaned is not None:
        lines.append(f"           leaves out adaptive's K since {_moment(view.orphaned)}: it heard of no station")
    return lines


def _waits(view: UnconfirmedView, now: float) -> str:
    left = max(0.0, view.confirm_by - now)
    base = f"{describe(view.reverts_to)}, cap {_cap(view.cap)}, fallback {_switch(view.fallback)}"
    return f"to be confirmed by {_moment(view.confirm_by)} ({left:.0f} s left), else back to {base}"


def _words(mode: PolicyMode | None) -> str | None:
    return None if mode is None else describe(mode)


def _cap(cap: int | None) -> str:
    return "none" if cap is None else str(cap)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _moment(ts: float) -> str:
    return datetime.fromtimestamp(ts).astimezone().strftime("%H:%M:%S")
