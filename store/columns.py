"""What a table of the store is declared with: columns of a name, a type and a comment."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    name: str
    type: str
    comment: str


class Table(NamedTuple):
    comment: str
    columns: tuple[Column, ...]


def columns(*lines: str) -> tuple[Column, ...]:
    """Read `name TYPE: comment` lines."""
    parsed = []
    for line in lines:
        head, comment = line.split(": ", 1)
        name, kind = head.split(" ", 1)
        parsed.append(Column(name, kind, comment))
    return tuple(parsed)
