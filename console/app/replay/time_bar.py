"""The time bar of a replay: from when to when, where it stands, what lies on the way, how fast it goes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, Span, between, clean, clip, cut, left, packed, right, width_of
from console.app.live.charts import MARKS
from console.app.replay.clock import neighbour, speed_text
from console.feed.messages import ReplayMark, ReplayView

NOW_FROM: Final = 100
"""Cells of width from which the time and the share are in the bar too."""

POSITION_FROM: Final = 112
"""Cells of width from which the step is named."""

_SECONDS_UNDER: Final = 600.0
"""Seconds of span under which the ends are told to the second."""

_RANK: Final = {"gap": 0, "control": 1, "version": 2, "alert": 3}
"""Of marks that fall into one cell the highest is seen."""

_DAY: Final = 86_400

_NO_MARKS: Final = " no alert, control action, change of version or gap in this trace"
_NO_MARKS_YET: Final = " no alert, control action, change of version or gap so far"


@dataclass(frozen=True)
class Bar:
    """A bar of a certain width. `first`: the column in which its track begins, `cells`: how long that is."""

    replay: ReplayView
    ts: float
    loop_from: float | None
    before: Line
    after: Line
    first: int
    cells: int

    @property
    def loaded(self) -> int:
        """Cells of the track for what was taken in so far; the rest is what still is to come."""
        share = 1.0 if self.replay.complete else min(max(self.replay.loaded_share, 0.0), 1.0)
        return max(1, round(share * self.cells))

    def place(self, ts: float) -> int:
        """The cell of a moment."""
        span = self.replay.end - self.replay.start
        share = (ts - self.replay.start) / span if span > 0 else 0.0
        return min(max(int(share * self.loaded), 0), self.loaded - 1)

    def moment_at(self, column: int) -> float | None:
        """The moment under a column of the screen; None beside the track, or where nothing was taken in yet."""
        cell = column - self.first
        if not 0 <= cell < self.loaded:
            return None
        share = cell / max(1, self.loaded - 1)
        return self.replay.start + share * (self.replay.end - self.replay.start)


def make_bar(replay: ReplayView, ts: float, loop_from: float | None, width: int, today: float) -> Bar:
    """`today`: the wall clock; a day is named where it is another one."""
    before: Line = ((f" {_end_text(replay, replay.start, today)} ", "dim"),)
    after = _after(replay, ts, width, today)
    cells = width - width_of(before) - width_of(after)
    if cells < 8:  # too narrow for the times: what plays, and where
        before, after = ((" ", "text"),), _pace(replay, wide=False)
        cells = max(1, width - width_of(before) - width_of(after))
    return Bar(replay, ts, loop_from, before, after, width_of(before), cells)


def bar_lines(bar: Bar, width: int, height: int) -> list[Line]:
    """The bar, and where there is a second line the marks before and after the moment."""
    line = cut((*bar.before, *packed(_track(bar)), *bar.after), width)
    return [line, _around(bar, width)] if height > 1 else [line]


def _track(bar: Bar) -> list[Span]:
    head = bar.place(bar.ts)
    loop = bar.replay.loop
    first, last = (bar.place(loop[0]), bar.place(loop[1])) if loop is not None else (0, bar.loaded - 1)
    cells: list[Span] = [("┈", "faint")] * bar.cells
    for cell in range(bar.loaded):
        inside = first <= cell <= last
        cells[cell] = ("━", "alpha") if cell <= head and inside else ("─", "dim" if inside and loop else "faint")
    for mark in sorted(bar.replay.marks, key=lambda mark: _RANK.get(mark.kind, 0)):
        if bar.replay.start <= mark.ts <= bar.replay.end:
            cells[bar.place(mark.ts)] = MARKS.get(mark.kind, ("·", "dim"))
    if loop is not None:
        cells[first], cells[last] = ("[", "accent"), ("]", "accent")
    elif bar.loop_from is not None:
        cells[bar.place(bar.loop_from)] = ("[", "accent")
    cells[head] = ("●", "bright")
    return cells


def _after(replay: ReplayView, ts: float, width: int, today: float) -> Line:
    """What stands right of the track. Every part keeps its width, so that the track keeps its own."""
    if replay.complete:
        end: Line = ((f" {_end_text(replay, replay.end, today)}", "dim"),)
    else:
        end = ((f" reading {_percent(replay.loaded_share)}", "accent"),)
    now: Line = EMPTY
    if width >= NOW_FROM:
        span = replay.end - replay.start
        share = min(max((ts - replay.start) / span, 0.0), 1.0) if span > 0 else 0.0
        of_all = _percent(share) if replay.complete else " " * len(_percent(0.0))  # of what, is not known yet
        now = (("  ", "text"), (numbers.clock(ts), "bright"), (f" {of_all}", "dim"))
    position: Line = EMPTY
    if width >= POSITION_FROM:
        position = ((f" {left(clean(replay.position), 19)}", "dim"),)
    return (*end, *now, *_pace(replay), *position)


def _pace(replay: ReplayView, wide: bool = True) -> Line:
    looping: Span = ("↻" if replay.loop is not None else " ", "accent")
    speed = right(speed_text(replay.speed), 6 if wide else 5)
    glyph: Span = ("▶", "ok") if replay.playing else ("‖", "warn")
    return ((speed, "text"), (" ", "text"), glyph, looping)


def _percent(share: float) -> str:
    return f"{int(min(max(share, 0.0), 1.0) * 100):>3} %"


def _end_text(replay: ReplayView, ts: float, today: float) -> str:
    clock = numbers.clock(ts) if replay.end - replay.start < _SECONDS_UNDER else numbers.minutes(ts)
    other_day = numbers.day(ts) != numbers.day(today) or abs(ts - today) > _DAY
    said = ts != replay.start and numbers.day(replay.start) == numbers.day(ts)  # once for both ends is enough
    return f"{numbers.day(ts)} {clock}" if other_day and not said else clock


def _around(bar: Bar, width: int) -> Line:
    """The loop, else the mark passed last; at the right the next one."""
    marks = bar.replay.marks
    ahead = neighbour(marks, bar.ts, 1)
    behind = neighbour(marks, bar.ts, -1)
    here = next((mark for mark in reversed(marks) if mark.ts == bar.ts), None)
    end = _mark(ahead, " next ", width // 2) if ahead is not None else EMPTY
    room = width - width_of(end) - 1
    if bar.replay.loop is not None:
        first, last = bar.replay.loop
        start: Line = (
            (" loop ", "accent"), (f"{numbers.clock(first)} – {numbers.clock(last)}", "text"), ("  o ends it", "dim"),
        )  # fmt: skip
    elif bar.loop_from is not None:
        start = ((" loop from ", "accent"), (numbers.clock(bar.loop_from), "text"), ("  o marks its end", "dim"))
    elif here is not None:
        start = _mark(here, " here ", room)
    elif behind is not None:
        start = _mark(behind, " last ", room)
    else:
        nothing = _NO_MARKS if bar.replay.complete else _NO_MARKS_YET
        start = EMPTY if marks else ((nothing, "faint"),)
    return cut(between(start, (*end, (" ", "text")) if end else EMPTY, width), width)


def _mark(mark: ReplayMark, word: str, width: int) -> Line:
    glyph, role = MARKS.get(mark.kind, ("·", "dim"))
    start: Line = ((word, "faint"), (glyph, role), (f" {numbers.clock(mark.ts)} ", "dim"))
    text_role: Role = "dim"
    return (*start, (clip(clean(mark.text or mark.kind), max(0, width - width_of(start) - 2)), text_role))
