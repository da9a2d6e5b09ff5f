"""Times that files of others carry: in their names, or given by hand. All results are Unix seconds.

A time in text has one of two forms, anywhere in it, with no further digit beside it:

- a date and a time of day: `2026-11-29T12:00:01`, `20261129T120001`, `2026-11-29_12-00-01`, `20261129120001` and their
  mixtures. Between date and time stands `T`, `_`, `-`, a space or nothing; in the time `:`, `-`, `_`, `.` or nothing;
  seconds and their fraction may be missing. A zone may follow: `Z`, `+01:00`, `-05:00`, `+0100`, `-0500`; without one
  it is local time.
- Unix seconds of ten digits (2001 to 2286), with a fraction or not: `1790000000`, `1790000000.25`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

LATEST: Final = 1e11
"""No time is later."""

_DATED: Final = re.compile(
    r"""(?<!\d) (?P<year>\d{4}) (?P<d>[-_.]?) (?P<month>\d\d) (?P=d) (?P<day>\d\d) [T_\ -]?
    (?P<hour>\d\d) (?P<t>[-:_.]?) (?P<minute>\d\d) (?: (?P=t) (?P<second>\d\d) (?P<fraction>[.,]\d{1,9})? )? (?!\d)
    (?P<zone> Z | [+-](?:0\d|1[0-4]):?(?:00|15|30|45) (?!\d) )?""",
    re.VERBOSE | re.ASCII,
)
_SECONDS: Final = re.compile(r"(?<!\d)[1-9]\d{9}(?:\.\d{1,9})?(?!\d)", re.ASCII)


def times_in(text: str, zone: tzinfo | None = None) -> list[float]:
    """The different times that stand in `text`, in their order. `zone`: of those that name none; None is local time."""
    rest = text
    found: dict[float, None] = {}
    for match in _DATED.finditer(text):
        ts = _moment(match, zone)
        if ts is not None and 0 < ts < LATEST:
            found[ts] = None
            rest = rest.replace(match.group(), "/", 1)
    return list(dict.fromkeys((*found, *_seconds(rest))))


def written(ts: float) -> str:
    """A time for a sentence, in UTC: `2026-11-29T12:00:01Z`."""
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def unix_seconds(moment: datetime, zone: tzinfo | None = None) -> float | None:
    """Unix seconds of a moment; one without a zone is in `zone`, or local time. None where no clock could show it."""
    try:
        return (moment if moment.tzinfo is not None or zone is None else moment.replace(tzinfo=zone)).timestamp()
    except (OverflowError, ValueError, OSError):
        return None


def offset(text: str) -> tzinfo:
    """The zone `Z`, `+01:00` or `+0100`."""
    if text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _moment(match: re.Match[str], zone: tzinfo | None) -> float | None:
    numbers = (match[name] for name in ("year", "month", "day", "hour", "minute", "second"))
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    try:
        moment = datetime(
            year, month, day, hour, minute, second, tzinfo=offset(match["zone"]) if match["zone"] else None
        )
    except ValueError:
        return None
    ts = unix_seconds(moment, zone)
    return None if ts is None else ts + float(f"0.{(match['fraction'] or '.0')[1:]}")


def _seconds(text: str) -> Iterator[float]:
    return (float(match.group()) for match in _SECONDS.finditer(text))
