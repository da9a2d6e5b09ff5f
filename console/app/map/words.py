"""Cells, arms and the age of an operating map in words. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from engine.schedule import lookup, parse_schedule
from store.operating_map.records import CellArm, MapCell, OperatingMap, WorkloadCost
from store.rehearsal.plan import WITHOUT

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


def fastest(map_: OperatingMap, cell: MapCell) -> CellArm | None:
    """The arm with the highest gain, of equals the first; by tokens/s where gains are not known."""
    known = [arm for arm in cell.arms if gain_of(map_, arm) is not None]
    if known:
        return max(known, key=lambda arm: gain_of(map_, arm) or 0.0)
    return max(cell.arms, key=lambda arm: arm.tokens_per_second, default=None)


def verdict(map_: OperatingMap, cell: MapCell) -> str:
    """Why the best is the best, or why there is no difference, or that nothing was measured; then what the schedule
    takes there."""
    return f"{_why(map_, cell)}{_taken(map_, cell)}"


def _why(map_: OperatingMap, cell: MapCell) -> str:
    if cell.state == "not_measured" or cell.best is None:
        return "Not measured: no arm ran long enough here. A plan whose traffic keeps the engine at this load fills it."
    top = fastest(map_, cell)
    behind = top is not None and top.arm != cell.best
    if cell.state == "no_difference":
        if top is None or not behind:
            return f"No difference: {cell.best} is fastest, but arms that draft more can't be told from it."
        return (
            f"No difference: {top.arm}, the fastest at {_gain(map_, top)}, can't be told from {cell.best}, "
            f"which drafts less; so {cell.best}."
        )
    more = f" {top.arm} drafts more and is not clearly faster." if top is not None and behind else ""
    if cell.best == map_.baseline:
        return f"Nothing beats {map_.baseline}, the best ordinary path, here.{more}"
    arm = next((arm for arm in cell.arms if arm.arm == cell.best), None)
    if arm is None or arm.gain is None:
        return f"{cell.best} is best. {map_.baseline} was not measured here, so there is no gain over it.{more}"
    once = ", of one pass alone: nothing is promised" if arm.low is None else ""
    return f"{cell.best} is best: {_gain(map_, arm, f' {map_.baseline}')}{once}.{more}"


def _gain(map_: OperatingMap, arm: CellArm, over: str = "") -> str:
    """`1.29× without (1.25 to 1.33)`."""
    bounds = "" if arm.low is None or arm.high is None else f" ({arm.low:.2f} to {arm.high:.2f})"
    return f"{numbers.two_places(gain_of(map_, arm))}×{over}{bounds}"


def _taken(map_: OperatingMap, cell: MapCell) -> str:
    if map_.schedule is None:
        return ""
    k = lookup(parse_schedule(map_.schedule), cell.first)
    return f" The schedule{'' if cell.workload is None else ', which is for the mix,'} takes K {k}."
