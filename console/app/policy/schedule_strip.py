"""A mode as a strip over batch size: `1──4: K 4 │ 5──12: K 1 │ 13──: 0`. Pure."""

from __future__ import annotations

from typing import NamedTuple

from console.app.drawing.spans import Line, Role, Span, width_of
from engine.policy import base_k
from engine.records import PolicyMode
from engine.schedule import clamp, parse_schedule

BAR: Span = (" │ ", "faint")


class Stretch(NamedTuple):
    """Batch sizes `first` to `last`, both included and None for all above, draft at most `k` tokens."""

    first: int
    last: int | None
    k: int


def stretches(mode: PolicyMode, max_k: int | None) -> list[Stretch]:
    """K over all batch sizes, lowered to the engine's maximum where that is known; neighbours of equal K are one."""
    if mode.mode in ("off", "static") or mode.schedule is None:
        k = base_k(mode, 1, max_k or 0)
        return [Stretch(1, None, k if max_k is None else min(k, max_k))]
    schedule = parse_schedule(mode.schedule)
    found: list[Stretch] = []
    for entry in schedule if max_k is None else clamp(schedule, max_k).schedule:
        if found and found[-1].k == entry.k:
            continue
        if found:
            found[-1] = found[-1]._replace(last=entry.first - 1)
        found.append(Stretch(entry.first, None, entry.k))
    return found


def strip_lines(mode: PolicyMode, max_k: int | None, running: int | None, width: int) -> list[Line]:
    """The strip, broken at its bars where it is too long; the range of `running` sequences is bright."""
    bound = mode.mode == "adaptive" and mode.act is not False
    lines: list[Line] = []
    for stretch in stretches(mode, max_k):
        here = running is not None and stretch.first <= max(running, 1) <= (stretch.last or max(running, 1))
        part = _words(stretch, "≤" if bound else "", "bright" if here else "text")
        if lines and width_of((*lines[-1], BAR, *part)) <= width:
            lines[-1] = (*lines[-1], BAR, *part)
        else:
            lines.append(part)
    return lines


def _words(stretch: Stretch, sign: str, role: Role) -> Line:
    sizes = str(stretch.first) if stretch.first == stretch.last else f"{stretch.first}──{stretch.last or ''}"
    return ((f"{sizes}: ", "dim" if role == "text" else role), (f"K {sign}{stretch.k}" if stretch.k else "0", role))
