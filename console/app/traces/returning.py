"""Coming back to a console from a trace that was opened from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Return:
    """`path`: the trace, which the list's cursor is put on. `why`: it could not be shown, one line; empty: it was."""

    path: str
    why: str = ""
