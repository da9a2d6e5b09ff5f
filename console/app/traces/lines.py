"""The traces of the Traces screen: a line each, and all that is known of the marked one. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, Span, clean, clip, cut, left, paragraph, right, width_of, wrap
from console.app.frame.statusline import short_model, short_version
from console.app.traces.words import FORMS, form_words, tail
from console.feed.traces import TraceLook, Traces

PLACE_WORDS: Final = {"data": "yours", "here": "here", "samples": "sample"}
_GLYPHS: Final[dict[str, Span]] = {
    "unread": ("◐ ", "dim"),
    "begun": ("  ", "dim"),
    "known": ("  ", "dim"),
    "broken": ("■ ", "critical"),
    "held": ("○ ", "warn"),
}
_YEAR_SECONDS: Final = 300 * 86_400.0
_FIGURES: Final = (7, 6, 7)
"""Widths of span, rows and size."""
_LEAST_NAME, _MOST_NAME = 16, 44
_WITH_PLACE, _WITH_MODEL = 100, 108
TEXT: Final = " TEXT"


def trace_header(width: int) -> Line:
    """Of rows of this width, with the cell of the cursor before them."""
    name, place, model = _layout(width)
    return cut(
        (
            (f"   {left('name', name)}  {left('recorded', 12)}  ", "dim"),
            (f"{right('span', 7)}  {right('rows', 6)}  {right('size', 7)}  {left('form', 9)}", "dim"),
            (f"  {left('place', place)}" if place else "", "dim"),
            ("  engine" if model else "", "dim"),
        ),
        width + 1,
    )


def trace_row(look: TraceLook, now: float, width: int) -> Line:
    """`now`: the wall clock, Unix seconds. The cursor takes one more cell before the line."""
    name, place, model = _layout(width)
    marked: Span = ("¶ ", "warn")
    glyph = marked if look.text and look.state in ("known", "begun") else _GLYPHS[look.state]
    known: Role = "text" if look.start is not None else "dim"
    when = _when(look.modified if look.start is None else look.start, now)
    line: list[Span] = [glyph, *_name(look, name), ("  ", "text"), (left(when, 12), known), ("  ", "text")]
    if look.state in ("broken", "held"):
        word = "broken: " if look.state == "broken" else ""
        return cut((*line, (f"{word}{clean(look.reason)}", _GLYPHS[look.state][1])), width)
    waits = "…" if look.state == "unread" else numbers.ABSENT
    span = waits if look.start is None or look.end is None else numbers.duration(look.end - look.start)
    rows = waits if look.rows is None else numbers.count(look.rows)
    line += [
        (f"{right(span, 7)}  ", "text"), (f"{right(rows, 6)}  ", "text"),
        (f"{right(numbers.size(look.bytes), 7)}  ", "text"),
        (left("" if look.form is None else FORMS[look.form], 9), "dim"),
        (f"  {left(PLACE_WORDS[look.place], place)}" if place else "", "dim"),
        (f"  {clip(_models(look, model), model)}" if model else "", "dim"),
    ]  # fmt: skip
    return cut(tuple(line), width)


def trace_detail(look: TraceLook, width: int) -> list[Line]:
    """Where it is, what it is of, whether it can be read by others, and what `enter` does."""
    lines: list[Line] = [((tail(clean(look.path), width), "bright"),)]
    if look.state in ("broken", "held"):
        role = _GLYPHS[look.state][1]
        lines += [((part, role),) for part in wrap(f"{look.state}: {clean(look.reason)}", width)]
    if look.text:
        warning = "TEXT: it holds prompts and answers. `specdeck trace convert --without-text` writes it without them."
        lines += [((part, "warn"),) for part in wrap(warning, width)]
    for label, text in (("engine", _engine(look)), ("holds", _holds(look)), ("notes", "; ".join(look.notes))):
        parts = wrap(clean(text), max(20, width - 8))
        lines += [((f"{label if row == 0 else '':<8}", "dim"), (part, "text")) for row, part in enumerate(parts)]
    return lines


def counted(found: Traces) -> str:
    """The list in a few words: how many, and what of the places is not in it."""
    parts = [f"{len(found.traces)} trace{'s' * (len(found.traces) != 1)}"]
    broken = sum(look.state == "broken" for look in found.traces)
    if broken:
        parts.append(f"{broken} broken")
    left_out = sum(place.left_out for place in found.places)
    if left_out:
        parts.append(f"{left_out} other file{'s' * (left_out != 1)} left out")
    parts += [f"{clean(place.path)}: {clean(place.error)}" for place in found.places if place.error]
    return " · ".join(parts)


def _layout(width: int) -> tuple[int, int, int]:
    """Widths of name, place and model; 0: not shown. Two cells of mark, and two between columns."""
    fixed = 2 + 2 + 12 + sum(2 + one for one in _FIGURES) + 2 + 9
    place = 6 if width >= _WITH_PLACE else 0
    room = width - fixed - (place + 2 if place else 0)
    if width < _WITH_MODEL:
        return max(_LEAST_NAME, room), place, 0
    name = max(_LEAST_NAME, min(_MOST_NAME, room // 2))
    return name, place, max(0, room - name - 2)


def _name(look: TraceLook, width: int) -> list[Span]:
    mark = TEXT if look.text else ""
    name = clip(clean(PurePath(look.path).name), width - len(mark))
    role: Role = "text" if look.state in ("known", "begun") else "dim"
    gap = " " * max(0, width - width_of(((name, role),)) - len(mark))
    return [(name, role), (mark, "warn"), (gap, "text")]


def _when(ts: float, now: float) -> str:
    if abs(now - ts) > _YEAR_SECONDS:
        return time.strftime("%-d %b %Y", time.localtime(ts))
    return f"{numbers.day(ts)} {numbers.minutes(ts)}"


def _models(look: TraceLook, width: int = 64) -> str:
    """Target and drafter; where there is little room the target gives way, which traces mostly share."""
    target, drafter = short_model(look.target), short_model(look.drafter) or clean(look.method)
    if not (target and drafter):
        return target or drafter
    return f"{clip(target, max(8, width - width_of(((drafter, 'dim'),)) - 3))} · {drafter}"


def _engine(look: TraceLook) -> str:
    if not look.target:
        return ""
    starts = "" if look.engines in (None, 1) else f" · {look.engines} starts of engines"
    how = f" · {look.method}" if look.method and look.method != look.drafter else ""
    return f"{_models(look)}{how} · vLLM {short_version(look.vllm)} {look.device}{starts}"


def _holds(look: TraceLook) -> str:
    parts: list[str] = []
    if look.start is not None and look.end is not None:
        lasted = numbers.duration(look.end - look.start)
        parts.append(f"{numbers.day(look.start)} {numbers.clock(look.start)} – {numbers.clock(look.end)} ({lasted})")
    if look.rows is not None:
        parts.append(numbers.many(look.rows, "row"))
    if look.sequences is not None:
        parts.append(numbers.many(look.sequences, "sequence"))
    if look.form is not None:
        parts.append(form_words(look.form))
    if look.workloads:
        parts.append("workloads " + " ".join(clip(clean(tag), 20) for tag in look.workloads))
    return " · ".join(parts)


def nothing_lines(sentences: Sequence[str], width: int) -> list[Line]:
    """What the list says when there is nothing in it."""
    lines: list[Line] = []
    for sentence in sentences:
        lines += paragraph(sentence, width, margin="  ")
    return lines or [EMPTY]
