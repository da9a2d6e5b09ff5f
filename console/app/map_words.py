"""Cells, arms and the age of an operating map in words. Pure."""

from __future__ import annotations

from typing import Final

from console.app import numbers
from store.operating_map.records import CellArm, MapCell, OperatingMap, WorkloadCost
from store.rehearsal.plan import WITHOUT, fixed_k

MIX: Final = "mix"
"""How the row of all workloads together is called."""

WITHOUT_SHORT: Final = "w/o"

NONE_HERE: Final = "no operating map in this record"


def range_label(load: tuple[int, int]) -> str:
    """A range of running sequences as a column's title: `1`, `5–8`."""
    first, last = load
    return str(first) if first == last else f"{first}–{last}"


def range_words(load: tuple[int, int]) -> str:
    first, last = load
    return f"{first} running" if first == last else f"{first} to {last} running"


def short_arm(arm: str) -> str:
    """An arm in three cells."""
    return WITHOUT_SHORT if arm == WITHOUT else arm[:3]


def row_name(workload: str | None) -> str:
    return MIX if workload is None else workload


def cell_of(map_: OperatingMap, workload: str | None, load: tuple[int, int]) -> MapCell:
    """The cell of a workload (None: the mix); one that the map does not name was not measured."""
    found = (cell for cell in map_.cells if cell.workload == workload and (cell.first, cell.last) == load)
    return next(found, MapCell(workload=workload, first=load[0], last=load[1], state="not_measured"))


def column_of(map_: OperatingMap, running: int | None) -> int | None:
    """The column of so many running sequences. An idle engine stands where one sequence would run."""
    if running is None or not map_.loads:
        return None
    now = max(running, 1)
    return next((index for index, (first, last) in enumerate(map_.loads) if first <= now <= last), None)


def cost_of(map_: OperatingMap, workload: str | None) -> WorkloadCost | None:
    return next((cost for cost in map_.costs if cost.workload == workload), None)


def gain_of(map_: OperatingMap, arm: CellArm) -> float | None:
    """The baseline's own gain is 1."""
    return 1.0 if arm.arm == map_.baseline else arm.gain


def cell_gain(map_: OperatingMap, cell: MapCell) -> float | None:
    return 1.0 if cell.best == map_.baseline else cell.gain


def stale_words(stale: list[str]) -> str:
    return f"made on another engine than this: {'; '.join(stale)}"


def age_words(map_ts: float, now: float) -> str:
    return f"{numbers.duration(max(0.0, now - map_ts))} old"


def verdict(map_: OperatingMap, cell: MapCell) -> str:
    """Why the best is the best, or why there is no difference, or that nothing was measured; then what the schedule
    takes there."""
    return f"{_why(map_, cell)}{_taken(map_, cell)}"


def _why(map_: OperatingMap, cell: MapCell) -> str:
    if cell.state == "not_measured" or cell.best is None:
        return "Not measured: no arm ran long enough here. A plan whose traffic keeps the engine at this load fills it."
    fastest = _fastest(cell)
    if cell.state == "no_difference":
        seen = f"the fastest, {fastest.arm}," if fastest is not None else "the fastest"
        return f"No difference: {seen} {_overlap(cell, fastest)}, so it is {cell.best}, which drafts least."
    if cell.best == map_.baseline:
        return f"Nothing beats {map_.baseline}, the best ordinary path, here."
    gain = f"{cell.best} is best: {numbers.two_places(cell.gain)}× {map_.baseline}"
    if cell.low is None or cell.high is None:
        return f"{gain}, of one pass alone: nothing is promised."
    return f"{gain} ({cell.low:.2f} to {cell.high:.2f}){_others(map_, cell, cell.low)}"


def _others(map_: OperatingMap, cell: MapCell, low: float) -> str:
    """What the best arm was held against: the arm that drafts least decides, others may be as good."""
    fixed = [arm for arm in _fixed(cell) if arm.arm != cell.best]
    least = min(fixed, key=lambda arm: -1 if arm.k is None else arm.k, default=None)
    if least is None:
        return "."
    bound = least.high if least.high is not None else gain_of(map_, least)
    equal = [arm.arm for arm in fixed if arm.high is not None and arm.high >= low]
    clear = f", clear of {least.arm}, which drafts least" if bound is not None and bound < low else ""
    return f"{clear}." + (f" As good: {', '.join(equal)}." if equal else "")


def _overlap(cell: MapCell, fastest: CellArm | None) -> str:
    if fastest is None or fastest.low is None or fastest.high is None:
        return "has no interval of its own (one pass)"
    return f"reaches from {fastest.low:.2f} to {fastest.high:.2f}, into the interval of {cell.best}"


def _fastest(cell: MapCell) -> CellArm | None:
    return max(_fixed(cell), key=lambda arm: arm.tokens_per_second, default=None)


def _fixed(cell: MapCell) -> list[CellArm]:
    return [arm for arm in cell.arms if arm.arm == WITHOUT or fixed_k(arm.arm) is not None]


def _taken(map_: OperatingMap, cell: MapCell) -> str:
    mix = cell_of(map_, None, (cell.first, cell.last))
    if map_.schedule is None or mix.k is None:
        return ""
    if cell.workload is None:
        return f" The schedule takes K {mix.k}."
    return f" The schedule, which is for the mix, takes K {mix.k}."
