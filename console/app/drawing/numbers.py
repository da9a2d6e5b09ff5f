"""Figures as short text: right-alignable, without a leading zero where a fraction is meant, "—" where absent."""

from __future__ import annotations

import time

from engine.records import PolicyMode

ABSENT = "—"


def fraction(value: float | None) -> str:
    """A rate between 0 and 1 in three or four cells: `.53`, `1.00`."""
    if value is None:
        return ABSENT
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text


def half_width(low: float | None, high: float | None) -> str:
    """Half the width of an interval, as a fraction."""
    return "" if low is None or high is None else _width((high - low) / 2)


def reach(value: float | None, high: float | None) -> str:
    """How far the interval of a ratio goes above it: its longer side, and the one that is never cut."""
    return "" if value is None or high is None else _width(high - value)


def _width(value: float) -> str:
    """One that says nothing takes no room: an interval from two blocks of time can be thousands wide."""
    return "≥10" if value >= 9.995 else fraction(value)


def two_places(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"


def rate(value: float | None) -> str:
    """Tokens a second in at most six cells."""
    if value is None:
        return ABSENT
    return f"{value:.1f}" if value < 999.95 else count(round(value))


def count(value: int | None) -> str:
    """A count in at most five cells: `118`, `9,120`, `12.3k`, `4.5M`."""
    if value is None:
        return ABSENT
    if value < 10_000:
        return f"{value:,}"
    for limit, size, unit in ((999_950, 1e3, "k"), (999_950_000, 1e6, "M")):
        if value < limit:
            scaled = value / size
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}{unit}"
    return f"{value / 1e9:.1f}G"


def many(value: int, noun: str) -> str:
    """`1 row`, `9,120 rows`: in sentences, where there is room."""
    return f"{value:,} {noun}{'s' * (value != 1)}"


def size(value: int) -> str:
    """Bytes, as `34 MB`."""
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:.0f} {unit}" if amount >= 9.95 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def duration(seconds: float) -> str:
    """A length of time, coarse: `0.4 s`, `42 s`, `12 min`, `3 h`, `2 d`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} d"


def brief(seconds: float) -> str:
    """The same in three cells mostly: `42s`, `12m`, `3h`."""
    return duration(seconds).replace("min", "m").replace(" ", "")


def countdown(seconds: float) -> str:
    """What is left of a time, to the second: `4:31`, `1:02:03`."""
    left = max(0, round(seconds))
    hours, minutes_left = divmod(left // 60, 60)
    return f"{hours}:{minutes_left:02}:{left % 60:02}" if hours else f"{minutes_left}:{left % 60:02}"


def clock(ts: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(ts))


def fine_clock(ts: float) -> str:
    """To the millisecond."""
    return f"{clock(ts)}.{int(ts % 1 * 1000):03}"


def minutes(ts: float) -> str:
    return time.strftime("%H:%M", time.localtime(ts))


def day(ts: float) -> str:
    """The day of the month, as `21 Sep`."""
    return time.strftime("%-d %b", time.localtime(ts))


def plain(value: int | None) -> str:
    """All digits of a small number."""
    return ABSENT if value is None else str(value)


def mode(policy: PolicyMode | None) -> str:
    """A policy as it is typed on the command line: `off`, `static:4`, `adaptive`."""
    if policy is None:
        return ABSENT
    if policy.mode == "static":
        return f"static:{policy.k}"
    if policy.mode == "adaptive":
        return "adaptive" if policy.act is not False else "advise"
    return policy.mode


def temperature(label: str | None) -> str:
    """A temperature bucket in seven cells: `(0,0.5]` as `(0,.5]`."""
    return "all" if label is None else label.replace("0.", ".")
