"""Reading what operators type for spans, moments and keys."""

from __future__ import annotations

import re
from datetime import datetime
from math import isfinite
from typing import Final

from console.cli.outcomes import BadInput

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
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
        seconds = float(text)
    except ValueError:
        pass
    else:
        if isfinite(seconds):
            return seconds
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise BadInput(f"{text!r} is no moment: write Unix seconds or 2026-11-29T18:00") from None


def parse_keys(text: str | None) -> list[str] | None:
    """Raises BadInput."""
    if text is None:
        return None
    keys = [key.strip() for key in text.split(",") if key.strip()]
    unknown = [key for key in keys if key not in KEYS]
    if unknown or not keys:
        raise BadInput(f"--by {text}: {', '.join(unknown) or 'nothing'} is none of {', '.join(KEYS)}")
    return keys
