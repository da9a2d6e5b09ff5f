"""Reading what operators type for spans, moments and keys."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Final

from console.cli.outcomes import BadInput

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MINUTE: Final = 60.0
"""18:00 is meant for a trace that starts at 18:00:20."""
KEYS: Final = ("workload", "context", "temperature", "model_version", "engine")


def parse_span(text: str | None) -> float | None:
    """Seconds of `30s`, `5m`, `2h`, `1d` or a plain number. Raises BadInput."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        raise BadInput(f"{text!r} is no span of time: write 30s, 5m, 2h or 1d")
    return seconds


def parse_time(text: str | None) -> float | None:
    """Unix seconds of a number or an ISO time (local without a zone). Raises BadInput."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise BadInput(f"{text!r} is no moment: write Unix seconds or 2026-11-29T18:00") from None


def parse_time_in(text: str, start: float) -> float:
    """Unix seconds of a moment of a trace that starts at `start`: also `18:00` or `18:00:30` of its day (local; of the
    next, where that lies before its start), and `+90s`, `+10m` from its start. Raises BadInput."""
    text = text.strip()
    if text.startswith("+"):
        return start + (parse_span(text[1:]) or 0.0)
    if re.fullmatch(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?", text):
        day = datetime.fromtimestamp(start)
        try:
            moment = datetime.combine(day, time.fromisoformat(text.zfill(5) if text.count(":") == 1 else text.zfill(8)))
        except ValueError:
            raise BadInput(f"{text!r} is no time of day: write 18:00 or 18:00:30") from None
        last = start - MINUTE
        return (moment if moment.timestamp() >= last else moment + timedelta(days=1)).timestamp()
    try:
        return parse_time(text) or 0.0
    except BadInput:
        raise BadInput(f"{text!r} is no moment: write Unix seconds, 2026-11-29T18:00, 18:00 or +10m") from None


def parse_keys(text: str | None) -> list[str] | None:
    """Raises BadInput."""
    if text is None:
        return None
    keys = [key.strip() for key in text.split(",") if key.strip()]
    unknown = [key for key in keys if key not in KEYS]
    if unknown or not keys:
        raise BadInput(f"--by {text}: {', '.join(unknown) or 'nothing'} is none of {', '.join(KEYS)}")
    return keys
