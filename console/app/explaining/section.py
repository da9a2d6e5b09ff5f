"""What an explanation is made of: a section for each figure, with text, facts and the query that gives it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from console.app.drawing.spans import EMPTY, Line, Role, clean, cut, join, left, wrap
from console.app.explaining.command import command_lines

MARGIN = "  "
_NAME = 16


class Text(NamedTuple):
    """A paragraph."""

    text: str
    role: Role = "dim"


class Fact(NamedTuple):
    """A name and its value, a line each; a long value goes on under itself."""

    name: str
    value: str
    role: Role = "text"


class Drawn(NamedTuple):
    """Lines for a width."""

    draw: Callable[[int], Sequence[Line]]


class Query(NamedTuple):
    """The SQL that gives the figure again. `source`: a file to ask, None for the station; `note`: what goes with it."""

    sql: str
    source: str | None = None
    note: str = ""


Block = Text | Fact | Drawn | Query


@dataclass(frozen=True)
class Section:
    """One figure. `value`: as it is on screen."""

    title: str
    value: str = ""
    blocks: Sequence[Block] = field(default_factory=tuple)
    role: Role = "bright"
    """Of the value."""


def page_lines(sections: Iterable[Section], width: int) -> list[Line]:
    """All sections under one another; only their first lines begin with a `title`."""
    lines: list[Line] = []
    for section in sections:
        lines += [*([EMPTY] if lines else []), *section_lines(section, width)]
    return lines


def section_lines(section: Section, width: int) -> list[Line]:
    head: Line = ((clean(section.title), "title"),)
    value: Line = ((clean(section.value), section.role),) if section.value else EMPTY
    lines = [cut(join([head, value]), width)]
    for block in section.blocks:
        lines += _block(block, width)
    return lines


def _block(block: Block, width: int) -> list[Line]:
    if isinstance(block, Text):
        return [((f"{MARGIN}{part}", block.role),) for part in wrap(clean(block.text), max(20, width - len(MARGIN)))]
    if isinstance(block, Fact):
        return _fact(block, width)
    if isinstance(block, Query):
        note = f"The same from the record. {block.note}".strip()
        told = _block(Text(note), width)
        command = command_lines(block.sql, block.source, width - len(MARGIN))
        return [*told, *(((f"{MARGIN}{line}", "text"),) for line in command)]
    return [cut(line, width) for line in block.draw(width)]


def _fact(fact: Fact, width: int) -> list[Line]:
    parts = wrap(clean(fact.value), max(20, width - _NAME)) or [""]
    return [
        ((left(f"{MARGIN}{fact.name if row == 0 else ''}", _NAME), "dim"), (part, fact.role))
        for row, part in enumerate(parts)
    ]
