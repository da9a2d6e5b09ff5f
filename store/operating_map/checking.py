"""Whether a map can be meant. It may come from a file or another program: nothing of it is believed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from engine.schedule import ScheduleError, parse_schedule
from store.operating_map.records import MapCell, OperatingMap
from store.rehearsal.plan import ADAPTIVE, PROPOSED, WITHOUT, fixed_k

LONGEST_NAME: Final = 200
"""Characters of an id or of a plan's name."""


MOST_GAIN: Final = 1000.0


class MapError(ValueError):
    """A map that can't be meant: names the place."""


def check(made: OperatingMap) -> None:
    """
    Raises:
        MapError: the first thing that is wrong.
    """
    for trouble in _troubles(made):
        raise MapError(trouble)


def _troubles(made: OperatingMap) -> Iterator[str]:
    for field in ("id", "plan", "baseline"):
        name = getattr(made, field)
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            yield f"{field}: must be 1 to {LONGEST_NAME} printable characters"
    if (endless := _not_finite(msgspec.to_builtins(made), "")) is not None:
        yield f"{endless}: must be a finite number"
    if made.ts <= 0 or made.repeats < 1:
        yield f"ts, repeats: a moment and a number of passes above 0, not {made.ts:g} and {made.repeats}"
    yield from _of_schedule(made)
    yield from _of_loads(made)
    yield from _of_cells(made)
    for place, cost in enumerate(made.costs):
        if cost.workload not in made.workloads:
            yield f"costs[{place}].workload: {cost.workload!r} is none of the map's workloads"


def _of_schedule(made: OperatingMap) -> Iterator[str]:
    if made.schedule is None:
        return
    try:
        highest = max(entry.k for entry in parse_schedule(made.schedule))
    except ScheduleError as error:
        yield f"schedule: {error}"
    else:
        if highest > made.fingerprint.max_k:
            yield f"schedule: K {highest} is above {made.fingerprint.max_k}, the largest that the engine drafts"


def _of_loads(made: OperatingMap) -> Iterator[str]:
    before = 0
    for place, (first, last) in enumerate(made.loads):
        if first <= before or last < first:
            yield f"loads[{place}]: {first} to {last} is no range above {before}"
        before = last


def _of_cells(made: OperatingMap) -> Iterator[str]:
    met: set[tuple[str | None, int]] = set()
    for place, cell in enumerate(made.cells):
        where = f"cells[{place}]"
        if cell.workload is not None and cell.workload not in made.workloads:
            yield f"{where}.workload: {cell.workload!r} is none of the map's workloads"
        if (cell.first, cell.last) not in made.loads:
            yield f"{where}: {cell.first} to {cell.last} is none of the map's loads"
        if (cell.workload, cell.first) in met:
            yield f"{where}: there are two cells of {cell.workload or 'the mix'} from {cell.first} on"
        met.add((cell.workload, cell.first))
        for trouble in _of_cell(cell, made.fingerprint.max_k):
            yield f"{where}.{trouble}"


def _of_cell(cell: MapCell, max_k: int) -> Iterator[str]:
    if cell.best is not None and cell.best not in [arm.arm for arm in cell.arms]:
        yield f"best: {cell.best!r} was not measured there"
    if cell.k is not None and not 0 <= cell.k <= max_k:
        yield f"k: {cell.k} is not 0 to {max_k}"
    for low, high in ((cell.low, cell.high), *((arm.low, arm.high) for arm in cell.arms)):
        if low is not None and high is not None and low > high:
            yield f"low: {low:g} is above high, {high:g}"
    for arm in cell.arms:
        if arm.tokens_per_second < 0 or arm.steps < 0 or arm.repeats < 0:
            yield f"arms: {arm.arm!r} has a number below 0"
        if arm.arm not in (WITHOUT, PROPOSED, ADAPTIVE) and fixed_k(arm.arm) is None:
            yield f"arms: {arm.arm!r} is no arm"
        if arm.gain is not None and not 0 < arm.gain < MOST_GAIN:
            yield f"arms: {arm.arm!r} has a gain of {arm.gain:g}"


def _not_finite(value: Any, place: str) -> str | None:
    """Where a number is that JSON could not hold."""
    if isinstance(value, float):
        return None if math.isfinite(value) else place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, item in items:
        inside = f"[{name}]" if isinstance(name, int) else f".{name}" if place else name
        if (found := _not_finite(item, f"{place}{inside}")) is not None:
            return found
    return None
