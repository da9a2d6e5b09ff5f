"""The operating map as a grid: workload × running sequences, in each cell the best arm and its gain. Pure.

Heat has a glyph and the number beside its colour. A stale map is hatched.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.cells import cell_len

from console.app.drawing import numbers
from console.app.drawing.spans import Line, Role, Span, clean, left, packed, right
from console.app.map import words
from store.operating_map.records import MapCell, OperatingMap

HATCH: Final = "╱"
LEVELS: Final = (1.03, 1.1, 1.2, 1.35, 1.5)
"""Gains from which a cell is one level warmer."""

CONTENT: Final = 8
"""Cells that the best arm and its gain take; one more leads them, for the cursor."""

NAME, CRAMPED_NAME, WIDEST_NAME = 10, 18, 26
"""Cells of a workload's name: the fewest, those where columns are out of view anyway, the most."""

BARS: Final = " ▁▂▄▅▆"
"""By heat; the tallest doesn't touch the row above."""

BAR: Final = 2
_COSTS: Final = ((("sched", 7), ("own", 6)), (("by sched.", 12), ("±", 5), ("own best", 10)))


class GridCell(NamedTuple):
    """`heat`: 0 for none to `len(LEVELS)`."""

    line: Line
    heat: int


class Layout(NamedTuple):
    """`first`: the leftmost column in view, of `columns` that fit. `costs`: the columns behind the cells."""

    name: int
    cell: int
    first: int
    columns: int
    costs: tuple[tuple[str, int], ...]

    def column_at(self, x: int) -> int | None:
        """The column under a cell of the terminal."""
        index = (x - self.name) // self.cell
        return self.first + index if x >= self.name and index < self.columns else None


def layout(map_: OperatingMap, width: int, wanted: int, first: int = 0) -> Layout:
    """Columns as they fit, moved so far that the wanted one is among them."""
    number = max(1, len(map_.loads))
    free = width - number * (CONTENT + 1)
    costs = _costs(map_, free - NAME)
    most = free - sum(size for _, size in costs)  # for the names, where all columns fit beside them
    most = min(most, WIDEST_NAME) if most >= NAME else CRAMPED_NAME
    name = min(max([NAME, *(2 + cell_len(workload) for workload in map_.workloads)]), most)
    room = max(CONTENT + 1, width - name - sum(size for _, size in costs))
    columns = min(number, room // (CONTENT + 1))
    cell = min(room // columns, CONTENT + 1 + BAR + 2)
    first = min(max(first, wanted - columns + 1, 0), max(0, min(wanted, number - columns)))
    return Layout(name, cell, first, columns, costs)


def header(map_: OperatingMap, grid: Layout, cursor: int, now: int | None) -> Line:
    """The ranges of running sequences, with where the engine is now."""
    more = grid.first > 0, grid.first + grid.columns < len(map_.loads)
    spans: list[Span] = [(left(f"{'‹' if more[0] else ' '} running", grid.name), "dim")]
    for index in range(grid.first, grid.first + grid.columns):
        label = words.range_label(map_.loads[index])
        text = f"{label} ▼" if index == now else label
        role: Role = "accent" if index == now else "bright" if index == cursor else "dim"
        spans += [(" ", "dim"), (left(text, grid.cell - 1), role)]
    if more[1]:
        spans.append(("›", "dim"))
    return (*spans, *((right(title, size), "dim") for title, size in grid.costs))


def grid_cell(map_: OperatingMap, cell: MapCell, width: int, stale: bool) -> GridCell:
    """The best arm and its gain in `width` cells."""
    gain = words.cell_gain(map_, cell)
    heat = _level(gain) if cell.state == "measured" else 0
    bar = " " if stale else BARS[heat]
    spans: list[Span] = [*_content(map_, cell, gain)]
    if width >= CONTENT + BAR:
        spans.append((f" {bar}", "ok"))
    used = sum(len(text) for text, _ in spans)
    spans.append((" " * (width - used), "text"))
    return GridCell(_hatched(spans), 0) if stale else GridCell(tuple(spans), heat)


def row_tail(map_: OperatingMap, workload: str | None, grid: Layout) -> Line:
    """What the proposed schedule means to a workload, behind its cells."""
    cost = words.cost_of(map_, workload)
    if cost is None:
        return ()
    worse = cost.gain is not None and cost.high is not None and cost.high < 1
    own = numbers.two_places(cost.own_best_gain)
    values: dict[str, tuple[str, Role]] = {
        "sched": (numbers.two_places(cost.gain), "warn" if worse else "text"),
        "±": (numbers.reach(cost.gain, cost.high), "dim"),
        "own": (own, "dim"),
    }
    names = {"by sched.": "sched", "own best": "own"}
    cells = ((values[names.get(title, title)], size) for title, size in grid.costs)
    return tuple((right(text, size), role) for (text, role), size in cells)


def row_head(workload: str | None, here: bool, width: int) -> Line:
    role: Role = "bright" if here else "accent" if workload is None else "text"
    return ((left(f"  {clean(words.row_name(workload))}", width), role),)


def _content(map_: OperatingMap, cell: MapCell, gain: float | None) -> list[Span]:
    if cell.state == "not_measured" or cell.best is None:
        return [(right("·", CONTENT), "dim")]
    arm = left(words.short_arm(cell.best), 3)
    if cell.state == "no_difference":
        return [(arm, "text"), (right("=", CONTENT - 3), "dim")]
    warm = cell.best != map_.baseline
    text = numbers.ABSENT if gain is None else f"{gain:.2f}" if gain < 9.995 else f"{gain:.1f}"
    return [(arm, "bright" if warm else "text"), (right(text, CONTENT - 3), "bright" if warm else "dim")]


def _hatched(spans: list[Span]) -> Line:
    """Every blank a stroke, every figure dim."""
    return packed([(HATCH, "faint") if char == " " else (char, "dim") for text, _ in spans for char in text])


def _level(gain: float | None) -> int:
    return 0 if gain is None else sum(gain >= limit for limit in LEVELS)


def _costs(map_: OperatingMap, room: int) -> tuple[tuple[str, int], ...]:
    if not map_.costs:
        return ()
    return next((titles for titles in reversed(_COSTS) if sum(size for _, size in titles) <= room), ())
