"""Modes as an operator types and reads them: `off`, `static:4`, `schedule:FILE-or-JSON`, `adaptive`, `advise`."""

from __future__ import annotations

import re
from typing import Final

from engine.policy.state import PolicyError
from engine.records import PolicyMode
from engine.schedule import ScheduleError, parse_schedule
from engine.schedule_file import read_schedule, to_json, to_line

FORMS: Final = "off, static:K, schedule:SCHEDULE, adaptive or advise (both may name a schedule: adaptive:SCHEDULE)"

_K: Final = re.compile(r"\s*[0-9]{1,9}", re.ASCII)


def describe(mode: PolicyMode) -> str:
    """The words that `parse_mode` reads as this mode, its `reason` left out: `schedule:[[1,4,4],[5,32,1]]`."""
    word = _word(mode)
    if mode.mode == "static":
        return f"{word}:{mode.k}"
    if mode.mode == "off" or mode.schedule is None:
        return word
    return f"{word}:{to_json(parse_schedule(mode.schedule))}"


def readable(mode: PolicyMode) -> str:
    """A mode in a sentence: `static:4`, `schedule 1-4: 4, 5-32: 1`, `advise within 1-4: 4, 5-32: 1`."""
    if mode.schedule is None or mode.mode in ("off", "static"):
        return describe(mode)
    within = " within" if mode.mode == "adaptive" else ""
    return f"{_word(mode)}{within} {to_line(parse_schedule(mode.schedule))}"


def parse_mode(text: str) -> PolicyMode:
    """Read a mode as typed. SCHEDULE is JSON itself or the path of a .json or .toml file; `adaptive` without one may
    use the engine's maximum at every batch size.

    Raises:
        PolicyError: names what may stand there, or the wrong entry of the schedule.
    """
    word, colon, value = text.strip().partition(":")
    if word == "off" and not colon:
        return PolicyMode(mode="off")
    if word == "static":
        return PolicyMode(mode="static", k=_whole(text, value))
    if word == "schedule" and value:
        return PolicyMode(mode="schedule", schedule=_schedule(value))
    if word in ("adaptive", "advise") and bool(colon) == bool(value):
        schedule = _schedule(value) if value else None
        return PolicyMode(mode="adaptive", schedule=schedule, act=word == "adaptive")
    raise PolicyError(f"{text[:80]!r} is no policy: {FORMS}")


def _word(mode: PolicyMode) -> str:
    return "advise" if mode.mode == "adaptive" and mode.act is False else mode.mode


def _whole(text: str, value: str) -> int:
    if not _K.fullmatch(value):
        raise PolicyError(f"{text[:80]!r}: static takes a whole number of 0 or more, as in static:4")
    return int(value)


def _schedule(source: str) -> list[tuple[int, int, int]]:
    try:
        return list(read_schedule(source).schedule)
    except ScheduleError as error:
        raise PolicyError(f"schedule: {error}") from error
