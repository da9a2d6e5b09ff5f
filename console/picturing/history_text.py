"""The history's sentences: one for each action, e.g. `14:06 adaptive: code K 4→2, predicted +6 %, saw +5 %`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from console.picturing.action_names import REVERT, UNDO
from console.picturing.policy_fields import fields
from console.picturing.policy_words import shown
from engine.policy import readable
from engine.records import BEGIN_ACTION, RECORD_TEXT_ACTION, ControlRecord, PolicyMode
from store.certificates import DRILL
from store.control_history import SCORE
from store.operating_map.keeping import MAP

_SENTENCES: Final = frozenset({DRILL, MAP, RECORD_TEXT_ACTION})
"""Actions whose reason says it all."""


def sentence(record: ControlRecord, score: ControlRecord | None, now: float) -> str:
    """One action. `score`: what became of it, where it was a decision. `now`: Unix seconds; other days are named."""
    return f"{_moment(record.ts, now)} {action_text(record, now, score)}"


def action_text(record: ControlRecord, now: float, score: ControlRecord | None = None) -> str:
    """The same without its moment."""
    return f"{record.actor}: {_what(record, score, now)}"


def scores_of(records: Sequence[ControlRecord]) -> dict[int, ControlRecord]:
    """Each decision's score, by the decision's index in `records`, which are newest first. Decisions are numbered anew
    when the controller forgets: a score is of the nearest one before it."""
    waiting: dict[tuple[str | None, Any], ControlRecord] = {}
    found: dict[int, ControlRecord] = {}
    for index, record in enumerate(records):
        numbers = record.numbers or {}
        if record.action == SCORE:
            waiting[record.workload, numbers.get("decision")] = record
        elif "id" in numbers:
            score = waiting.pop((record.workload, numbers["id"]), None)
            if score is not None:
                found[index] = score
    return found


def _what(record: ControlRecord, score: ControlRecord | None, now: float) -> str:
    numbers = record.numbers or {}
    if record.action == SCORE or "predicted" in numbers:
        return f"{record.why or f'{record.workload} {record.action}'}{_seen(score or record)}"
    if record.action == BEGIN_ACTION:
        return f"began with {readable(msgspec.convert(record.after, PolicyMode))}"
    if record.action == "confirm":
        return "confirmed what waited for it"
    by = numbers.get("confirm_by")
    until = f", to be confirmed by {_moment(by, now)}" if isinstance(by, float) else ""
    change = ", ".join(f"{field.name} {shown(field.before)} → {shown(field.after)}" for field in fields(record))
    if record.action == UNDO:
        return f"{record.why}: {change}"
    if record.action == REVERT:
        return f"takes back: {change}; {record.why}"
    if record.action in _SENTENCES and record.why:
        return record.why
    what = change or _otherwise(record, now)
    return f"{what}{until}{f' ({record.why})' if record.why else ''}"


def _seen(score: ControlRecord) -> str:
    numbers = score.numbers or {}
    observed = numbers.get("observed")
    if not isinstance(observed, int | float):
        return ""
    word = "saw" if numbers.get("basis") == "executed" else "estimated since"
    return f", {word} {100 * observed:+.0f} %"


def _otherwise(record: ControlRecord, now: float) -> str:
    """What changed no field of the policy."""
    after = record.after or {}
    if record.action == "confirm_by":
        by = after.get("confirm_by")
        return "waits no longer to be confirmed" if by is None else f"to be confirmed by {_moment(by, now)}"
    if record.action == "mode" and record.before == record.after:
        return "the policy as it is"
    named = ", ".join(str(value) for value in after.values() if isinstance(value, str | int | float))
    words = (record.workload or "", record.action.replace("_", " "), named)
    return " ".join(word for word in words if word)


def _moment(ts: float, now: float) -> str:
    moment, today = (datetime.fromtimestamp(one).astimezone() for one in (ts, now))
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")
