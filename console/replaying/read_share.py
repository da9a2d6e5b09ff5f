"""How far this process has read a file, by the kernel's word: whatever format it has, whoever reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

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
