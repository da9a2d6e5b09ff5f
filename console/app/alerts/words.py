"""What speaks for an alert and what would settle it, in words. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.feed.messages import AlertView
from store.judge.alerts import ACCEPTANCE, Cause
from store.judge.reports import AlertReport

_REMEDIES: Final = {
    "drift": "enter shows the bucket. A says that this level is right from now on; a lower K (-) wastes fewer drafts.",
    "shift": "enter shows the bucket. u on the Policy screen takes back a change made here; A accepts the new level.",
    "speedup_floor": "- lowers K for all, f falls back to K 0; adaptive does both by itself, workload by workload.",
    "failing_workload": "l on the Live screen moves the workload to the vanilla lane: it and its neighbours gain.",
    "policy_mismatch": "3 shows configured, resolved and executed side by side, and the reason where there is one.",
    "telemetry_loss": "Figures of that stretch are missing, none is wrong. 7 shows whether the engine was starved.",
    "engine_down": "7 shows its log and when it starts again.",
    "gateway_down": "The station starts it again; clients get no answer until then.",
    "recording_stopped": "Make room on that disk: recording goes on by itself, serving was never touched.",
    "quarantine": '`specdeck sql "select * from quarantine"` shows the rows; they count nowhere.',
    "clock_step": "Set the machine's clock once and let it be kept (chrony): times before and after don't fit.",
    "map_stale": "5 shows what differs; a new rehearsal makes a new map.",
}


def remedy(view: AlertView) -> str:
    """What the operator can do about it; empty where it is over or nothing is known."""
    return "" if view.state == "resolved" else _REMEDIES.get(view.kind, "")


def told_cause(cause: Cause) -> str:
    """One cause with its moment."""
    return cause.text if cause.ts is None else f"{cause.text} ({numbers.minutes(cause.ts)})"


def evidence_words(report: AlertReport) -> str:
    """Its numbers: the compared levels with their samples, or the measured ratio with its interval."""
    evidence = report.evidence
    if report.kind in ACCEPTANCE:
        return (
            f"acceptance at depth {evidence.get('depth')}: {_percent(evidence.get('reference'))} "
            f"(n {evidence.get('reference_n')}) → {_percent(evidence.get('present'))} (n {evidence.get('n')}, "
            f"worth {evidence.get('n_effective')}); one-sided bound at 0.9999 "
            f"{_signed(evidence.get('bound_points'))} points"
        )
    if "speedup" in evidence:
        waste = f"; waste {_percent(evidence['waste'])}" if "waste" in evidence else ""
        return (
            f"realised speedup {_plain(evidence.get('speedup'))} ({_plain(evidence.get('speedup_low'))} to "
            f"{_plain(evidence.get('speedup_high'))}, {evidence.get('cells')} cells), floor "
            f"{_plain(evidence.get('floor'))}{waste}"
        )
    known = {name: value for name, value in evidence.items() if value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in known.items())


def _percent(value: object) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else "unknown"


def _plain(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else "unknown"


def _signed(value: object) -> str:
    return f"{value:.1f}".replace("-", "−") if isinstance(value, int | float) else "unknown"
