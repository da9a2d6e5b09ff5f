"""Something that is about to be done, in words: what is, what will be, what that means, and the way back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from console.app.drawing.spans import EMPTY, Line, Role, clean, wrap

MOST_LINES: Final = 2
"""Of each side of a change: a schedule can be long, and the keys below it must stay in sight."""


@dataclass(frozen=True)
class Change:
    title: str
    before: str
    after: str
    effects: Sequence[str] = field(default_factory=list)
    undo: str = "u takes it back"
    table: Sequence[Line] = ()
    """What becomes what, part by part."""


def change_lines(change: Change, width: int) -> list[Line]:
    """What a confirmation shows."""
    lines = [
        *_labelled("before", change.before, "text", width),
        *_labelled("after", change.after, "bright", width),
        EMPTY,
    ]
    lines += [*change.table, EMPTY] if change.table else []
    for effect in change.effects:
        lines += [((text, "text"),) for text in wrap(clean(effect), width)]
    lines += [EMPTY, *_labelled("undo", change.undo, "text", width), EMPTY]
    lines.append((("y", "key"), (" yes, do it    ", "text"), ("esc", "key"), (" no", "text")))
    return lines


def _labelled(label: str, text: str, role: Role, width: int) -> list[Line]:
    parts = wrap(clean(text), max(8, width - 8))
    if len(parts) > MOST_LINES:
        parts = [*parts[: MOST_LINES - 1], f"{parts[MOST_LINES - 1]}…"]
    return [((f"{label if row == 0 else '':<8}", "dim"), (part, role)) for row, part in enumerate(parts)]
