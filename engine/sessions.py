"""Linux process sessions, straight from /proc: a session remembers what re-parenting forgets.

Start times are clock ticks since boot: unlike wall-clock times they don't move when the clock is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Stat(NamedTuple):
    """One living process (zombies are not living)."""

    pid: int
    name: str
    """At most 15 characters; programs may set it themselves, as vLLM does."""
    session: int
    start_ticks: int


def read_stat(pid: int) -> Stat | None:
    """The process of `pid`, or None when there is none or it is a zombie."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, spaces and parentheses included.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    return Stat(pid=pid, name=head.partition("(")[2], session=int(fields[3]), start_ticks=int(fields[19]))


def start_ticks(pid: int) -> int | None:
    """Start of `pid`, of a zombie too; None when there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) >= 20 else None


def session_members(session: int) -> Iterator[Stat]:
    """Every living process of `session`, its leader included."""
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            stat = read_stat(int(entry.name))
            if stat is not None and stat.session == session:
                yield stat


def writes_to(pid: int, log: Path) -> bool:
    """Whether standard output or error of `pid` is the file `log` (also a rotated or deleted one of that name)."""
    for descriptor in (1, 2):
        try:
            target = os.readlink(PROC / str(pid) / "fd" / str(descriptor))
        except OSError:
            continue
        if target.removesuffix(" (deleted)") == str(log):
            return True
    return False


def command_line(pid: int) -> list[str]:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []
