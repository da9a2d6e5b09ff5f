"""How much of a trace there is, and how far this process has read it, by the kernel's word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from store.trace.errors import TraceError
from store.trace.forms import form_of

_OPEN_FILES: Final = Path("/proc/self/fd")
_POSITIONS: Final = Path("/proc/self/fdinfo")


def read_share(path: Path) -> float:
    """0 to 1; 0 where it isn't open or can't be told."""
    try:
        size, real = path.stat().st_size, os.path.realpath(path)
        positions = [_position(number) for number in os.listdir(_OPEN_FILES) if _target(number) == real]
    except OSError:
        return 0.0
    return min(1.0, max(positions, default=0) / size) if size else 0.0


def records_in(path: Path) -> int | None:
    """How many records a trace holds; None where that can't be told without reading it, or it is none."""
    from pyarrow import ArrowException, parquet

    try:
        return int(parquet.read_metadata(path).num_rows) if form_of(path) == "compact" else None
    except (TraceError, ArrowException, OSError):  # whoever reads it will say why
        return None


def _target(number: str) -> str:
    try:
        return os.readlink(_OPEN_FILES / number)
    except OSError:  # closed since it was listed
        return ""


def _position(number: str) -> int:
    try:
        first = (_POSITIONS / number).read_text().splitlines()[0]
    except (OSError, IndexError):
        return 0
    return int(first.removeprefix("pos:"))
