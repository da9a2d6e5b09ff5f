"""The workloads of the Policy screen, a line each: lane, K, fallback with its countdown, and why. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, Role, clean, left, right
from console.feed.messages import Snapshot, WorkloadView

LEAD: Final = 3
"""Cells before the name: the cursor, the glyph, a blank."""

STATE_WIDTH: Final = 40
WHY_LEAST: Final = 30
"""The reason has a column of its own where at least so many cells are left."""

_NONE_YET: Final = (
    "No workload yet. Requests that carry an x-workload header, or vllm_xargs.workload in the body, get a line here; "
    "m, f, + and - hold for all of them together."
)
_OBSERVED: Final = "An engine that is only observed does not tell workloads apart."


def no_workload(snapshot: Snapshot | None) -> str:
    """What stands in the place of the workloads."""
    return _OBSERVED if snapshot is not None and snapshot.policy is None else _NONE_YET


def workload_header(width: int) -> Line:
    name, why = _widths(width)
    titles = [" " * (LEAD - 1), left("workload", name), right("K", 3), right("run", 4), "", left("state", STATE_WIDTH)]
    return ((" ".join([*titles, "why" if why else ""]), "dim"),)


def workload_row(view: WorkloadView, snapshot: Snapshot, width: int) -> Line:
    """A workload without its cursor, in `width` cells."""
    name, why = _widths(width)
    glyph, state, role = workload_state(view, snapshot)
    if view.advice and role == "ok" and not why:
        state, role = f"would do: {clean(view.advice)}", "accent"
    reason = clean(view.advice or view.why or "")
    return (
        (f"{glyph} ", role),
        (left(clean(view.name), name), "text"),
        (" " + right(numbers.plain(view.k), 3), "bright" if view.k is not None else "dim"),
        (" " + right(str(view.running), 4), "text" if view.running else "dim"),
        ("  " + left(state, STATE_WIDTH), "dim" if role == "ok" else role),
        (" " + left(reason, why) if why else "", "accent" if view.advice else "dim"),
    )


def workload_state(view: WorkloadView, snapshot: Snapshot) -> tuple[str, str, Role]:
    """Glyph, words and role: what lowers its K, the strongest first."""
    if snapshot.policy is not None and snapshot.policy.mode == "off":
        return "○", "mode off", "dim"
    if view.lane == "vanilla":
        return "⇥", "vanilla lane", "fallback"
    if snapshot.fallback:
        return "◆", "fallback for all", "fallback"
    if view.fallback:
        return "◆", f"fallback{_since(view, snapshot.ts)}{_next(view, snapshot.ts)}", "fallback"
    return "●", "ok", "ok"


def workload_detail(view: WorkloadView) -> str:
    """Everything that is said about one workload, in full."""
    parts = [f"would do: {view.advice}" if view.advice else "", view.why or ""]
    said = "; ".join(part for part in parts if part)
    return f"{view.name}: {said or 'nothing was decided about it yet'}"


def _since(view: WorkloadView, now: float) -> str:
    return "" if view.since is None else f" since {numbers.duration(max(0.0, now - view.since))}"


def _next(view: WorkloadView, now: float) -> str:
    if view.next_try is None:
        return ""
    return ", next try now" if view.next_try <= now else f", next try in {numbers.countdown(view.next_try - now)}"


def _widths(width: int) -> tuple[int, int]:
    """Cells of the name and of the reason; the reason is 0 where there is no room for it."""
    fixed = LEAD + 4 + 5 + 2 + STATE_WIDTH + 1
    name = max(8, min(24 if width < 150 else 40, width - fixed))
    rest = width - fixed - name
    return name, rest if rest >= WHY_LEAST else 0
