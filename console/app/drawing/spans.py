"""Lines as the views make them: text with a role, no colours, no markup, no Textual.

Everything that comes from outside (workload names, error texts, log lines) passes `clean` and is then only ever text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

Role = Literal[
    "text", "bright", "dim", "faint", "title", "key", "accent",
    "ok", "warn", "critical", "fallback", "alpha", "k", "load",
]  # fmt: skip
"""What a piece of text means; `themes.Palette` turns it into a style."""

Span = tuple[str, Role]
Line = tuple[Span, ...]

EMPTY: Line = ()

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


class Part(NamedTuple):
    """A piece of a one-line display. Where room is short the parts with the highest `spare` go first."""

    spans: Line
    spare: int = 0
    short: Line = EMPTY
    """Tried before the part goes."""
    short_spare: int | None = None
    """How spareable the short form is; None: as the whole."""


def clean(text: str) -> str:
    """Make outside text safe to print: control and direction characters become a visible dot."""
    return _CONTROL.sub("·", text)


def width_of(line: Iterable[Span]) -> int:
    """Cells that a line takes."""
    return sum(cell_len(text) for text, _ in line)


def clip(text: str, width: int) -> str:
    """Cut text to at most `width` cells, with an ellipsis where something was lost."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def left(text: str, width: int) -> str:
    return set_cell_size(clip(text, width), width)


def right(text: str, width: int) -> str:
    clipped = clip(text, width)
    return " " * (width - cell_len(clipped)) + clipped


def cut(line: Line, width: int) -> Line:
    """Cut a line to at most `width` cells."""
    kept: list[Span] = []
    room = width
    for text, role in line:
        size = cell_len(text)
        if size > room:
            kept.append((clip(text, room), role))
            break
        kept.append((text, role))
        room -= size
    return tuple(kept)


def between(start: Line, end: Line, width: int) -> Line:
    """`start` at the left edge, `end` at the right one; `start` is cut where both don't fit."""
    room = max(0, width - width_of(end))
    start = cut(start, max(0, room - 1) if end else room)
    return (*start, (" " * (room - width_of(start)), "text"), *end)


def join(lines: Sequence[Line], separator: Span = ("  ", "text")) -> Line:
    """Put lines behind one another; empty ones leave no gap."""
    joined: list[Span] = []
    for line in lines:
        if line and joined:
            joined.append(separator)
        joined.extend(line)
    return tuple(joined)


def packed(row: Sequence[Span]) -> Line:
    """Neighbouring pieces of one role as one span."""
    spans: list[Span] = []
    for text, role in row:
        if spans and spans[-1][1] == role:
            spans[-1] = (spans[-1][0] + text, role)
        else:
            spans.append((text, role))
    return tuple(spans)


def run_together(spans: Iterable[Span]) -> Line:
    """The same to look at, on one ground, in as few spans as can be: a blank takes the role of what is before it.

    Each span costs a terminal some 45 bytes of colours.
    """
    joined: list[Span] = []
    for text, role in spans:
        if joined and (joined[-1][1] == role or not text.strip(" ")):
            joined[-1] = (joined[-1][0] + text, joined[-1][1])
        elif text:
            joined.append((text, role))
    return tuple(joined)


def fit(parts: Sequence[Part], width: int, separator: Span = ("  ", "text")) -> Line:
    """Join the parts that fit into `width` cells, shortening and leaving out the most spareable first."""
    kept = [part for part in parts if part.spans]
    while True:
        line = join([part.spans for part in kept], separator)
        if width_of(line) <= width or len(kept) <= 1:
            return cut(line, width)
        first = max(range(len(kept)), key=lambda index: kept[index].spare)
        whole = kept[first]
        spare = whole.spare if whole.short_spare is None else whole.short_spare
        kept[first : first + 1] = [Part(whole.short, spare)] if whole.short else []


def paragraph(text: str, width: int, role: Role = "dim", margin: str = "") -> list[Line]:
    """Text of anybody's as lines, with `margin` before them and as much room behind."""
    return [((f"{margin}{part}", role),) for part in wrap(clean(text), max(8, width - 2 * len(margin)))]


def wrap(text: str, width: int) -> list[str]:
    """Break text at blanks into lines of at most `width` cells; a longer word is cut into pieces."""
    lines: list[str] = []
    current = ""
    for word in text.split():
        while cell_len(word) > width:
            if current:
                lines.append(current)
                current = ""
            lines.append(set_cell_size(word, width))
            word = word[len(lines[-1].rstrip()) :]
        candidate = f"{current} {word}" if current else word
        if cell_len(candidate) > width:
            lines.append(current)
            current = word
        else:
            current = candidate
    if current:
        lines.append(current)
    return lines


def text_of(line: Line) -> str:
    """The bare text of a line."""
    return "".join(text for text, _ in line)
