"""One cell of the operating map explained: why its best arm is the best, and each arm with its figures. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, Role, clean, left, right, wrap
from console.app.map import words
from store.operating_map.records import CellArm, MapCell, OperatingMap

ARM: Final = 9


def cell_title(map_: OperatingMap, cell: MapCell) -> str:
    return f"{words.row_name(cell.workload)} · {words.range_words((cell.first, cell.last))}"


def cell_lines(map_: OperatingMap, cell: MapCell, width: int, height: int) -> list[Line]:
    """The verdict and the arms. What is not in view `enter` shows."""
    said: list[Line] = [((f" {part}", "text"),) for part in wrap(clean(words.verdict(map_, cell)), max(20, width - 2))]
    lines = [*said, *cost_lines(map_, cell.workload, width), *arm_table(map_, cell)]
    if height and len(lines) > height:
        left_over = len(lines) - height + 1
        lines = [*lines[: height - 1], ((f"   … {left_over} more: ", "dim"), ("enter", "key"))]
    return lines


def arm_table(map_: OperatingMap, cell: MapCell) -> list[Line]:
    """A line for each arm, in the plan's order; nothing where nothing was measured."""
    if not cell.arms:
        return []
    unit = "tok/s" if cell.workload is None else "tok/s/seq"
    titles = (right(unit, 9), right("gain", 6), right("±", 5), right("steps", 7), right("repeats", 8))
    head: Line = ((left("   arm", ARM + 3), "dim"), ("".join(titles), "dim"))
    return [head, *(_arm(map_, cell, arm) for arm in cell.arms)]


def cost_lines(map_: OperatingMap, workload: str | None, width: int) -> list[Line]:
    """What the proposed schedule means to the workload, and what would be best for it alone."""
    cost = words.cost_of(map_, workload)
    if cost is None or cost.gain is None:
        return []
    error = numbers.reach(cost.gain, cost.high)
    own = "" if cost.own_best_gain is None else f"; its own best arm at each load: {cost.own_best_gain:.2f}×"
    text = f"Under the proposed schedule: {cost.gain:.2f}×{f' ±{error}' if error else ''}{own}."
    return [((f" {part}", "dim"),) for part in wrap(text, max(20, width - 2))]


def _arm(map_: OperatingMap, cell: MapCell, arm: CellArm) -> Line:
    best = arm.arm == cell.best
    gain = words.gain_of(map_, arm)
    role: Role = "bright" if best else "text"
    mark = "=" if cell.state == "no_difference" else "●"
    return (
        (f" {mark if best else ' '} ", "ok" if best else "dim"),
        (left(clean(arm.arm), ARM), role),
        (right(numbers.rate(arm.tokens_per_second), 9), role),
        (right(numbers.two_places(gain), 6), role),
        (right(numbers.reach(arm.gain, arm.high), 5), "dim"),
        (right(numbers.count(arm.steps), 7), "text"),
        (right(str(arm.repeats), 8), "text"),
        (f"  {_remark(map_, cell, arm)}", "dim"),
    )


def _remark(map_: OperatingMap, cell: MapCell, arm: CellArm) -> str:
    if arm.arm == map_.baseline:
        return "baseline"
    top = words.fastest(map_, cell)
    return "fastest" if top is not None and top.arm == arm.arm != cell.best else ""
