"""The stamps of vLLM's log lines, `11-29 12:00:01`, which name neither year nor zone, and how both are found.

A stamp that does name a year (`2026-11-29 12:00:01,123`, `2026-11-29T12:00:01Z`; JSON logs and `--timestamps` of
container tools have such) goes before vLLM's own on the same line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from store.imports.times import offset, unix_seconds

_STAMP: Final = re.compile(
    r"""(?<![\d-]) (?: (?P<year>2\d{3}) - )? (?P<month>0[1-9]|1[0-2]) - (?P<day>0[1-9]|[12]\d|3[01]) [ T]
    (?P<hour>[01]\d|2[0-3]) : (?P<minute>[0-5]\d) : (?P<second>[0-5]\d) (?P<fraction>[.,]\d{1,9})? (?!\d)
    (?P<zone> Z | [+-](?:0\d|1[0-4]):?(?:00|15|30|45) (?!\d) )?""",
    re.VERBOSE | re.ASCII,
)
_LEAP_YEAR: Final = 2024
_NEW_YEAR: Final = timedelta(days=180)
_STRAGGLER: Final = timedelta(days=360)
_SLACK: Final = timedelta(days=1)


class Stamp(NamedTuple):
    """A stamp as it stands on its line: `moment` is in a leap year where the line names none."""

    line: int
    moment: datetime
    has_year: bool


class NoSuchDay(ValueError):
    """A stamp on the 29th of February, in a year that has none. `line`: from 1."""

    def __init__(self, stamp: Stamp, year: int) -> None:
        super().__init__(f"{stamp.moment:%m-%d} is no day of the year {year}")
        self.line = stamp.line


def stamp_in(text: str, line: int) -> Stamp | None:
    """The stamp of a line; None where there is none or it names a day that no year has."""
    matches = list(_STAMP.finditer(text))
    if not matches:
        return None
    match = next((match for match in matches if match["year"]), matches[-1])
    month, day, hour, minute, second = (int(match[name]) for name in ("month", "day", "hour", "minute", "second"))
    year = int(match["year"] or _LEAP_YEAR)
    microsecond = int(f"{(match['fraction'] or '.0')[1:]:0<6}"[:6])
    zone = offset(match["zone"]) if match["zone"] else None
    try:
        moment = datetime(year, month, day, hour, minute, second, microsecond, zone)
    except ValueError:
        return None
    return Stamp(line, moment, match["year"] is not None)


def year_offsets(stamps: Iterable[Stamp]) -> list[int]:
    """How many years after the first stamp each lies: one more whenever a stamp falls back by half a year or more. A
    line of the old year that comes late, among those of the new, is one of the old."""
    offsets: list[int] = []
    years, before = 0, None
    for stamp in stamps:
        moment = stamp.moment.replace(tzinfo=None)
        if before is not None:
            years += (before - moment >= _NEW_YEAR) - (moment - before >= _STRAGGLER)
        before = moment
        offsets.append(years)
    return offsets


def first_year(last: Stamp, years: int, modified: datetime) -> int:
    """The year of the first stamp of a file that was last written at `modified` (local time): its last stamp, `years`
    later, is at most a day after that."""
    year = modified.year
    if _in_year(last, year) > modified + _SLACK:
        year -= 1
    return year - years


def dated(stamps: list[Stamp], year: int, zone: tzinfo | None) -> list[float]:
    """Unix seconds of stamps in the order of their lines. `year`: of the first one that names none; `zone`: of those
    that name none, None is local time.

    Raises:
        NoSuchDay: one doesn't exist in its year.
    """
    bare = [stamp for stamp in stamps if not stamp.has_year]
    years = dict(zip((stamp.line for stamp in bare), year_offsets(bare), strict=True))
    moments = [
        stamp.moment if stamp.has_year else _in_year(stamp, year + years[stamp.line]) for stamp in stamps
    ]  # fmt: skip
    return [unix_seconds(moment, zone) or 0.0 for moment in moments]


def _in_year(stamp: Stamp, year: int) -> datetime:
    try:
        return stamp.moment.replace(year=year)
    except ValueError:
        raise NoSuchDay(stamp, year) from None
