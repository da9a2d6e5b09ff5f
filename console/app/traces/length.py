"""Reads how long a recording is to be. Pure."""

from __future__ import annotations

import re
from typing import Final

from console.feed.traces import LONGEST_SECONDS

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class LengthError(ValueError):
    """That is no length for a recording: says what is."""


def read_length(text: str) -> float | None:
    """Seconds of `30s`, `10m`, `2h`, `1d` or a plain number; None for nothing: until it is ended.

    Raises:
        LengthError: it is something else, or longer than a recording can be.
    """
    if not text.strip():
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([smhd]?)(?:in)?", text.strip())
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        raise LengthError(f"{text.strip()!r} is no length: write 30s, 10m or 2h, or nothing to end it by hand")
    if seconds > LONGEST_SECONDS:
        raise LengthError("at most 1d: the station may have removed older steps by then")
    return seconds
