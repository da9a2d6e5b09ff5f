"""The alerts of the Alerts screen: what fires first, then what is pending, then the past, newest first. Pure.

They come from two places: the judge's, with all that is known of each, from the station's history; and plain facts
(an engine that is down) from the snapshot, which are there sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from console.app.alerts.words import evidence_words, remedy, told_cause
from console.app.drawing import numbers
from console.app.drawing.spans import Line, Role, clean, cut, left, right, wrap
from console.feed.messages import AlertView
from store.figures import BucketKey
from store.judge.reports import AlertReport

GLYPHS: Final[dict[str, tuple[str, Role]]] = {
    "info": ("·", "dim"), "warn": ("▲", "warn"), "critical": ("■", "critical"),
}  # fmt: skip

_DAY_SECONDS: Final = 86_400.0

_RANK: Final = {"critical": 0, "warn": 1, "info": 2}
_STATES: Final = {"firing": 0, "pending": 1, "resolved": 2}


@dataclass(frozen=True)
class AlertLine:
    """One alert, wherever it came from. `report`: all that the judge knows of it; None for a plain fact."""

    view: AlertView
    report: AlertReport | None = None

    @property
    def key(self) -> str:
        """Tells it from the others for as long as it is shown."""
        view = self.view
        return f"#{view.id}" if view.id is not None else f"{view.kind} {view.cause or ''} {view.started!r}"

    @property
    def bucket(self) -> BucketKey | None:
        return self.view.bucket


def alert_lines(history: Iterable[AlertReport], now: Sequence[AlertView]) -> list[AlertLine]:
    """Everything to show, in order. What the snapshot says of an alert of the judge is newer than its history."""
    newest = {view.id: view for view in now if view.id is not None}
    judged = [AlertLine(newest.get(report.id, _view(report)), report) for report in history]
    known = {line.view.id for line in judged}
    judged += [AlertLine(view) for number, view in newest.items() if number not in known]
    firing = {line.view.kind for line in judged if line.view.state == "firing"}
    facts = [AlertLine(view) for view in now if view.id is None and view.kind not in firing]
    return sorted([*judged, *facts], key=_order)


def counted(lines: Sequence[AlertLine]) -> str:
    """How many there are of each state, in words."""
    number = {state: sum(line.view.state == state for line in lines) for state in _STATES}
    return f"{number['firing']} firing · {number['pending']} pending · {number['resolved']} over"


def alert_row(line: AlertLine, moment: float, width: int) -> Line:
    """`moment`: the time that is shown, Unix seconds."""
    view = line.view
    glyph, role = GLYPHS[view.severity]
    over = view.state == "resolved"
    lasted = (view.ended if view.ended is not None else moment) - view.started
    told = "●" if _unseen(view, moment) else "✓" if view.acknowledged else "z" if _asleep(view, moment) else " "
    return cut(
        (
            (f"{glyph} ", "faint" if over else role),
            (left(view.state, 9), "dim" if view.state != "firing" else role),
            (f"{told} ", role if told == "●" else "dim"),
            (right(_began(view.started, moment), 8), "dim"),
            (right(numbers.brief(max(0.0, lasted)), 6), "dim"),
            ("  ", "text"),
            (clean(view.text), "dim" if over else "text"),
        ),
        width,
    )


def alert_detail(line: AlertLine, moment: float, width: int) -> list[Line]:
    """The whole sentence, how sure, what changed, what was said to it, and what would settle it."""
    view, report = line.view, line.report
    lines: list[Line] = [((text, "bright"),) for text in wrap(clean(view.text), max(20, width))]
    for label, text in (
        ("how sure", _evidence(report)),
        ("changed", "; ".join(told_cause(cause) for cause in report.causes) if report is not None else ""),
        ("told", _told(view, moment)),
        ("next", remedy(view)),
    ):
        lines += _labelled(label, text, width)
    return lines


def _evidence(report: AlertReport | None) -> str:
    told = evidence_words(report) if report is not None else ""
    return f"{told} · h explains it" if told else ""


def _labelled(label: str, text: str, width: int) -> list[Line]:
    parts = wrap(clean(text), max(20, width - 10))
    return [((f"{label if row == 0 else '':<10}", "dim"), (part, "text")) for row, part in enumerate(parts)]


def _told(view: AlertView, moment: float) -> str:
    said = []
    if view.acknowledged:
        said.append(f"acknowledged by {view.acknowledged}")
    if _asleep(view, moment):
        assert view.snoozed_until is not None
        said.append(f"asleep until {_began(view.snoozed_until, moment)}: it goes on, and nobody is told")
    return "; ".join(said)


def _began(ts: float, moment: float) -> str:
    """The time of day within the last day, else the date."""
    return numbers.minutes(ts) if moment - ts < _DAY_SECONDS else numbers.day(ts)


def _asleep(view: AlertView, moment: float) -> bool:
    return view.snoozed_until is not None and view.snoozed_until > moment


def _unseen(view: AlertView, moment: float) -> bool:
    return view.state == "firing" and view.acknowledged is None and not _asleep(view, moment)


def _order(line: AlertLine) -> tuple[int, int, float, str]:
    view = line.view
    grave = _RANK[view.severity] if view.state == "firing" else 0
    return _STATES[view.state], grave, -view.started, line.key


def _view(report: AlertReport) -> AlertView:
    return AlertView(
        kind=report.kind, severity=report.severity, state=report.state, text=report.text, started=report.started,
        ended=report.ended, bucket=report.bucket, id=report.id, acknowledged=report.acknowledged,
        snoozed_until=report.snoozed_until,
    )  # fmt: skip
