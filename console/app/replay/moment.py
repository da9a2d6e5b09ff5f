"""Times of a replay as an operator types them: `14:05`, `14:05:30`, `2026-09-21 14:05`, `+90s`, `40%`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal

from console.app.drawing import numbers

UNDERSTOOD: Final = "14:05, 14:05:30, 2026-09-21 14:05, +90s, -2m, 1h30m, 40%"

_MINUTE: Final = 60.0
_MOST_DAYS: Final = 400
_UNITS: Final = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}
_CLOCK: Final = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?", re.ASCII)
_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%", re.ASCII)
_OFFSET: Final = re.compile(r"([+-]?)((?:\d{1,9}(?:\.\d{1,6})? ?(?:h|min|m|s) ?)+)", re.ASCII)
_PIECE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(h|min|m|s)", re.ASCII)


class MomentError(ValueError):
    """What was typed means no moment, or none of this trace: one line for the operator."""


@dataclass(frozen=True)
class Moment:
    """`clock`: seconds of a day, of `day` where that was given. `offset`: seconds onward from where the replay stands,
    `begin`: from the start of the trace. `share`: of the span, 0 to 1."""

    kind: Literal["clock", "offset", "begin", "share"]
    value: float
    text: str
    day: date | None = None
    whole_minute: bool = False


def read_moment(text: str) -> Moment:
    """Raises MomentError: it means no moment, with the forms that do."""
    stripped = text.strip()
    if found := _SHARE.fullmatch(stripped):
        if float(found[1]) <= 100:
            return Moment("share", float(found[1]) / 100, stripped)
    elif found := _CLOCK.fullmatch(stripped):
        moment = _clock(found, stripped)
        if moment is not None:
            return moment
    elif found := _OFFSET.fullmatch(stripped):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(found[2]))
        kind: Literal["offset", "begin"] = "offset" if found[1] else "begin"
        return Moment(kind, -seconds if found[1] == "-" else seconds, stripped)
    raise MomentError(f"{stripped!r} is no moment; understood: {UNDERSTOOD}" if stripped else f"write {UNDERSTOOD}")


def resolve(moment: Moment, start: float, end: float, now: float) -> float:
    """The Unix seconds that are meant in a trace from `start` to `end` whose clock stands at `now`.

    A time of day is the one nearest to `now` within the trace. Offsets stop at its ends.

    Raises:
        MomentError: the trace has no such moment.
    """
    if moment.kind == "share":
        return start + moment.value * (end - start)
    if moment.kind in ("offset", "begin"):
        return min(max((now if moment.kind == "offset" else start) + moment.value, start), end)
    slack = _MINUTE if moment.whole_minute else 1.0  # 14:00 is the start of a trace that begins at 14:00:03
    inside = [ts for ts in _on_days(moment, start, end) if start - slack < ts <= end]
    if not inside:
        raise MomentError(f"{moment.text} is not in this trace, which runs {span_text(start, end)}")
    return max(start, min(inside, key=lambda ts: abs(ts - now)))


def span_text(start: float, end: float) -> str:
    """From when to when, with the days where there is more than one."""
    first, last = datetime.fromtimestamp(start).date(), datetime.fromtimestamp(end).date()
    if first == last:
        return f"{numbers.clock(start)} – {numbers.clock(end)} on {numbers.day(start)}"
    return f"{numbers.day(start)} {numbers.clock(start)} – {numbers.day(end)} {numbers.clock(end)}"


def _clock(found: re.Match[str], text: str) -> Moment | None:
    hour, minute, second = int(found[2]), int(found[3]), float(found[4] or 0)
    if hour > 23 or minute > 59 or second >= 60:
        return None
    try:
        day = date.fromisoformat(found[1]) if found[1] else None
    except ValueError:
        return None
    return Moment("clock", hour * 3600 + minute * 60 + second, text, day, found[4] is None)


def _on_days(moment: Moment, start: float, end: float) -> Iterator[float]:
    """The time of day on each day of the trace, or on the one that was named."""
    first = moment.day or datetime.fromtimestamp(start).date()
    last = moment.day or datetime.fromtimestamp(end).date()
    hours, rest = divmod(int(moment.value), 3600)
    for offset in range(min((last - first).days, _MOST_DAYS) + 1):
        try:
            noted = datetime.combine(first + timedelta(offset), datetime.min.time())
            yield noted.replace(hour=hours, minute=rest // 60, second=rest % 60).timestamp() + moment.value % 1
        except (OverflowError, OSError, ValueError):
            return  # a day that no clock of this machine can tell
