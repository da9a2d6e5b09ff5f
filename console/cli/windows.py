"""Reading the windows that operators type: `22:10..22:40`, `+10m..+20m`, `-30m..`, Unix seconds, ISO times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from console.cli.outcomes import BadInput
from console.cli.spans import parse_span, parse_time

_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_FORMS: Final = "write FROM..TO, each Unix seconds, 22:10[:30], +10m from its start, -10m from its end, or nothing"


class Bounds(NamedTuple):
    """(start, end] in Unix seconds; None: from the beginning, to the end."""

    start: float | None
    end: float | None


def parse_window(text: str | None, option: str, span: tuple[float, float] | None) -> Bounds:
    """The window that `text` names within a record that spans `span` (Unix seconds; None: nothing is recorded).

    A time of day in FROM is the last one before the record's end; in TO, the first one after FROM. Local time.

    Raises:
        BadInput: names the option, and what may stand there.
    """
    if text is None:
        return Bounds(None, None)
    first, dots, last = text.strip().partition("..")
    if not dots or not (first or last):
        raise BadInput(f"{option} {text!r} is no window: {_FORMS}")
    return _bounds(first, last, span, f"{option} {text!r}")


def parse_ends(first: str | None, last: str | None, span: tuple[float, float] | None) -> Bounds:
    """The same from what `--from` and `--to` say; None: not given. Raises BadInput."""
    said = " ".join(f"{name} {text}" for name, text in (("--from", first), ("--to", last)) if text is not None)
    return _bounds(first or "", last or "", span, said)


def _bounds(first: str, last: str, span: tuple[float, float] | None, said: str) -> Bounds:
    try:
        start = _moment(first, span, after=None)
        end = _moment(last, span, after=start)
    except BadInput as error:
        raise BadInput(f"{said}: {error.message}; {_FORMS}") from None
    if start is not None and end is not None and not start < end:
        raise BadInput(f"{said}: it ends before it begins")
    if span is not None and not _meet(Bounds(start, end), span):
        raise BadInput(f"{said}: nothing was recorded then; the record goes from {written(span)}")
    return Bounds(start, end)


def overlap(one: Bounds, other: Bounds) -> float:
    """Seconds that are in both."""
    start = max(-_FAR if bounds.start is None else bounds.start for bounds in (one, other))
    end = min(_FAR if bounds.end is None else bounds.end for bounds in (one, other))
    return max(0.0, end - start)


def written(span: tuple[float, float]) -> str:
    """`2026-11-29 22:00:03 to 22:30:00`, local time; the second date where it is another."""
    start, end = (datetime.fromtimestamp(ts) for ts in span)
    return f"{start:%Y-%m-%d %H:%M:%S} to {end:{'%H:%M:%S' if end.date() == start.date() else '%Y-%m-%d %H:%M:%S'}}"


_FAR: Final = 1e12


def _meet(bounds: Bounds, span: tuple[float, float]) -> bool:
    late = bounds.start is not None and bounds.start >= span[1]
    early = bounds.end is not None and bounds.end <= span[0]
    return not late and not early


def _moment(text: str, span: tuple[float, float] | None, after: float | None) -> float | None:
    text = text.strip()
    if not text:
        return None
    begun, ended = span or (0.0, 0.0)
    if text[0] in "+-":
        return (begun if text[0] == "+" else ended) + float(text[0] + "1") * _seconds(text[1:])
    clock = _CLOCK.fullmatch(text)
    return parse_time(text) if clock is None else _of_day(clock, ended, after)


def _seconds(text: str) -> float:
    return 0.0 if text.rstrip("smhd") == "0" else parse_span(text) or 0.0


def _of_day(clock: re.Match[str], end: float, after: float | None) -> float:
    """When the clock shows this: last before `end`, or first after `after`."""
    hour, minute, second = (int(part or 0) for part in clock.groups())
    near = datetime.fromtimestamp(end if after is None else after)
    moment = near.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if after is None and moment.timestamp() >= end:
        moment -= timedelta(days=1)
    elif after is not None and moment.timestamp() <= after:
        moment += timedelta(days=1)
    return moment.timestamp()
