"""An alert: what was tested, in which windows, how sure it is, and what was left out. Pure."""

from __future__ import annotations

from typing import Final

from console.app.alerts.lines import AlertLine
from console.app.alerts.words import evidence_words, remedy, told_cause
from console.app.drawing import numbers
from console.app.explaining.record import Record, window_words
from console.app.explaining.section import Block, Fact, Section, Text
from store.figure_sql import deciding, judged, missing, work
from store.figure_sql.scope import Scope
from store.figures import BucketKey, Window
from store.judge.alerts import ACCEPTANCE
from store.judge.reports import AlertReport

_ACCEPTANCE: Final = (
    "Acceptance at a common depth m, the largest with enough draft steps on both sides: mean over draft steps with m "
    "or more drafted of min(accepted, m)/m, so that another K is no fall. It fires where two disjoint windows in a "
    "row stand below by more than the threshold ({threshold}), each with a one-sided t bound below 0 at 0.9999 (or at "
    "0.99 each and as much together), with n_effective ≥ 15 on both sides, looked at once a window. Clustered by "
    "sequence."
)
_THRESHOLDS: Final = {
    "drift": "5 points below the 7-day baseline or the pinned reference",
    "shift": "10 points below the last window before, 5 across a version or configuration change",
}
_SPEED: Final = (
    "Realised speedup over windows of 5 min, a 10-s cell one observation since the rows of a step share its duration. "
    "It fires where the upper end of the 95 % interval, calibration error included, lies below the floor in two "
    "windows in a row; at least 6 cells."
)
_OTHERS: Final = {
    "policy_mismatch": "K as executed differs from configured for more than 20 steps and no limit and no cause "
    "explains it, or the engine dropped or clamped the schedule.",
    "telemetry_loss": "Numbered frames that never came. What was in them is in no figure; none is wrong.",
    "quarantine": "Rows that can't be (more accepted than drafted, and the like) were set apart: they count nowhere.",
    "engine_down": "Nothing was heard of an engine, or its process ended.",
    "clock_step": "Wall clock and monotonic clock of the engine's host moved apart: times before and after don't fit.",
    "map_stale": "Model, drafter, hardware, topology or vLLM is not what the operating map was made on.",
}
_LEFT_OUT: Final = "Left out: probe rows, and draft steps soon after a long stretch at K = 0; quarantined rows."
_SPEED_SECONDS: Final = 300.0


def alert_sections(line: AlertLine, record: Record) -> list[Section]:
    view, report = line.view, line.report
    found = [_what(line), _test(line, record)]
    if report is not None and report.causes:
        blocks: list[Block] = [Fact(cause.kind, told_cause(cause)) for cause in report.causes]
        found.append(Section("What changed at that time", "", blocks))
    if view.id is not None:
        kept: list[Block] = [
            Text("Everything that is known of it: evidence, causes, what was said to it."),
            record.query(judged.record(view.id)),
        ]
        found.append(Section("As it is kept", f"alert {view.id}", kept))
    return found


def _what(line: AlertLine) -> Section:
    view = line.view
    ended = "" if view.ended is None else f" to {numbers.clock(view.ended)}"
    blocks: list[Block] = [
        Text(view.text, "text"),
        Fact("since", f"{numbers.day(view.started)} {numbers.clock(view.started)}{ended}: end of the first window, or "
             "the moment"),
        Fact("state", view.state),
        *([Fact("acknowledged", f"by {view.acknowledged}")] if view.acknowledged else []),
        *([Fact("next", remedy(view))] if remedy(view) else []),
    ]  # fmt: skip
    return Section(f"Alert: {view.kind}", view.severity, blocks, "critical" if view.severity == "critical" else "warn")


def _test(line: AlertLine, record: Record) -> Section:
    kind, report = line.view.kind, line.report
    if report is not None and kind in ACCEPTANCE:
        return _acceptance(report, record)
    if report is not None and "speedup" in report.evidence:
        return _speed(report, record)
    blocks: list[Block] = [Text(_OTHERS.get(kind, "A plain fact: it is so now, nothing was tested."))]
    if report is not None and report.evidence:
        blocks.append(Fact("evidence", evidence_words(report)))
    until = line.view.ended if line.view.ended is not None else record.now
    if kind == "telemetry_loss":
        blocks.append(record.query(missing.gaps(line.view.started, until)))
    elif kind == "quarantine":
        blocks.append(record.query(missing.quarantined(line.view.started, until)))
    elif kind == "policy_mismatch" and report is not None:
        blocks.append(record.query(deciding.executed(report.engine, until)))
    return Section("What it goes by", "", blocks)


def _acceptance(report: AlertReport, record: Record) -> Section:
    """The evidence pools the windows that stood below; the query asks the last one."""
    evidence = report.evidence
    blocks: list[Block] = [
        Text(_ACCEPTANCE.format(threshold=_THRESHOLDS.get(report.kind, ""))),
        *(
            Fact(name, _number(evidence.get(key), unit))
            for name, key, unit in (
                ("depth m", "depth", ""), ("present", "present", ""), ("n", "n", " sequences"),
                ("n_effective", "n_effective", ""), ("against", "against", ""), ("reference", "reference", ""),
                ("its n", "reference_n", " sequences"), ("fall", "fall_points", " points"),
                ("bound", "bound_points", " points: below 0 the fall is significant"),
            )
        ),
    ]  # fmt: skip
    start, end, depth = (evidence.get(name) for name in ("window_start", "window_end", "depth"))
    if isinstance(start, int | float) and isinstance(end, int | float):
        blocks.append(Fact("last window", window_words(Window(float(start), float(end)))))
        if report.bucket is not None and isinstance(depth, int):
            scope = Scope(key=report.bucket, start=float(start), end=float(end), engine=report.engine)
            note = (
                "Of the last window; `present` pools the windows that stood below, and counts a sequence that was "
                "quiet for 5 min anew. After 48 h sequences are booked whole, at their last row."
            )
            blocks.append(record.query(judged.at_depth(scope, depth), note))
    blocks.append(Text(_LEFT_OUT))
    return Section("How sure: the test", f"bound {_number(evidence.get('bound_points'), ' points')}", blocks)


def _speed(report: AlertReport, record: Record) -> Section:
    evidence = report.evidence
    blocks: list[Block] = [
        Text(_SPEED),
        Fact("speedup", _number(evidence.get("speedup"), "×")),
        Fact("interval", f"{_number(evidence.get('speedup_low'))} … {_number(evidence.get('speedup_high'))}"),
        Fact("floor", _number(evidence.get("floor"), "×")),
        Fact("cells", _number(evidence.get("cells"))),
    ]
    if "waste" in evidence:
        blocks.append(Fact("waste", f"{_number(evidence['waste'])}, limit {_number(evidence.get('waste_limit'))}"))
    window = Window(report.started - _SPEED_SECONDS, report.started)
    scope = record.scope(report.bucket or BucketKey(None, None, None, None), window, report.engine)
    note = "Of the first window that showed it: what the speedup divides. v is not in the tables."
    blocks += [Fact("first window", window_words(window)), record.query(work.step_time(scope), note)]
    return Section("How sure: the test", f"{_number(evidence.get('speedup'), '×')}", blocks)


def _number(value: object, unit: str = "") -> str:
    if value is None:
        return numbers.ABSENT
    return f"{value:g}{unit}".replace("-", "−") if isinstance(value, int | float) else f"{value}{unit}"
