"""A query as one command to paste into a shell, in lines that fit. Pure.

The lines are the command: none is broken inside a text, and what a shell would read between double quotes is not in a
query (`store.figure_sql`).
"""

from __future__ import annotations

import re
import shlex
from typing import Final

from rich.cells import cell_len

UNPRINTABLE: Final = "TRACE"
"""Stands for a path that can't be shown, and so not be copied either."""

_WORD: Final = re.compile(r"(?:'(?:[^']|'')*'|[^\s'])+")
_CONTINUED: Final = "    "


def command_lines(sql: str, source: str | None, width: int) -> list[str]:
    """`specdeck sql "…"`, over as many lines as it takes. `source`: a file; None: the running station."""
    start = 'specdeck sql "' if source is None else f'specdeck sql {path(source)} "'
    first, *rest = [line for text in sql.splitlines() for line in _broken(text, width)]
    lines = [start + first, *rest] if cell_len(start + first) < width else [start, first, *rest]
    return [*lines[:-1], f'{lines[-1]}"']


def path(source: str) -> str:
    """As a shell takes it for one word."""
    return shlex.quote(source) if source.isprintable() else UNPRINTABLE


def _broken(text: str, width: int) -> list[str]:
    """One line of a query at its blanks, those in texts left alone."""
    indent = text[: len(text) - len(text.lstrip())]
    lines: list[str] = []
    current = ""
    for word in _WORD.findall(text):
        candidate = f"{current} {word}" if current else f"{indent}{word}"
        if current and cell_len(candidate) > width - 1:
            lines.append(current)
            candidate = f"{indent}{_CONTINUED}{word}"
        current = candidate
    return [*lines, current]
