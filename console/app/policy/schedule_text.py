"""A draft schedule on one line, as the console's editor reads it: `1-4: 4, 5-12: 1, 13-32: 0`. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from engine.schedule import DraftSchedule, ScheduleError, parse_schedule
from engine.schedule_file import parse_text

EXAMPLE: Final = "1-4: 4, 5-12: 1, 13-: 0"

_ENTRY: Final = re.compile(r"\s*([0-9]{1,10})\s*(?:([-–─]+)\s*([0-9]{1,10})?)?\s*[:=]\s*(?:[kK]\s*)?(\S+)\s*", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


def parse_line(text: str, widest: int) -> DraftSchedule:
    """Read an edited line, or vLLM's JSON. A range without an end (`13-: 0`) ends at `widest`, the most sequences that
    are scheduled at once; beyond it the last K holds anyway.

    Raises:
        ScheduleError: names the entry.
    """
    stripped = text.strip()
    if not stripped:
        raise ScheduleError(f"nothing is written yet: write {EXAMPLE}")
    if stripped[0] in "[{":
        return parse_text(stripped, "json").schedule
    return parse_schedule([_entry(number, part, widest) for number, part in enumerate(stripped.split(","), 1)])


def _entry(number: int, part: str, widest: int) -> list[Any]:
    match = _ENTRY.fullmatch(part)
    if match is None:
        raise ScheduleError(f"entry {number} ({part.strip()[:80]!r}): write batch sizes and K, as in 5-12: 1")
    first, dash, last, k = match.groups()
    end = int(last) if last else max(int(first), widest) if dash else int(first)
    return [int(first), end, int(k) if _WHOLE.fullmatch(k) else k]
