"""An operating map as text: a grid of workloads and running sequences, the schedule under it, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from console.cli.figures_text import NONE, printable
from console.cli.rehearse_text_words import WIDTH, bounds, filled, in_blocks
from engine.schedule import lookup, parse_schedule
from store.operating_map.loads import shown
from store.operating_map.records import MapCell, OperatingMap

MIX: Final = "mix"
_NO_DIFFERENCE: Final = "="
_NOT_MEASURED: Final = "·"


def map_text(made: OperatingMap, stale: Sequence[str], width: int = WIDTH) -> list[str]:
    when, of = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(made.ts)), made.fingerprint
    lines = [
        f"operating map {printable(made.id, 60)}, made {when}",
        *filled([f"plan {printable(made.plan)}, {repeats(made)}; gains are over {made.baseline}"], width),
        *filled([f"{printable(of.hardware, 200)}; {printable(of.model_version, 300)}"], width),
        *stale_lines(stale, width),
        "",
        *in_blocks(*grid(made), width),
        *filled([legend(made)], width, "  "),
        "",
        *filled(schedule_lines(made), width),
        *filled(cost_sentences(made), width, "  "),
        *filled((printable(note, 400) for note in made.notes), width),
    ]
    return lines


def stale_lines(stale: Sequence[str], width: int = WIDTH) -> list[str]:
    if not stale:
        return []
    said = "; ".join(printable(one, 300) for one in stale)
    return filled([f"STALE, it is of something else than what runs: {said}. Rehearse again: specdeck rehearse"], width)


def repeats(made: OperatingMap) -> str:
    return "one repeat" if made.repeats == 1 else f"{made.repeats} repeats"


def grid(made: OperatingMap) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the mix, each workload, and the schedule's K."""
    cells = {(cell.workload, cell.first): cell for cell in made.cells}
    rows = [
        [
            MIX if name is None else printable(name, 14),
            *(cell_text(cells.get((name, first))) for first, _ in made.loads),
        ]
        for name in (None, *made.workloads)
    ]
    if made.schedule is not None:
        schedule = parse_schedule(made.schedule)
        rows.append(["schedule", *(f"K {lookup(schedule, first)}" for first, _ in made.loads)])
    return ["running", *map(shown, made.loads)], rows


def cell_text(cell: MapCell | None) -> str:
    """The best arm and its gain; `=` no difference, `·` not measured."""
    if cell is None or cell.state == "not_measured":
        return _NOT_MEASURED
    if cell.state == "no_difference":
        return _NO_DIFFERENCE
    return f"{cell.best}" if cell.gain is None else f"{cell.best} {cell.gain:.2f}"


def legend(made: OperatingMap) -> str:
    return (
        f"the arm that drafts least of those that serve best, and its gain in tokens/s over {made.baseline} with as "
        f"many sequences running; {_NO_DIFFERENCE} no difference between drafting and not, {_NOT_MEASURED} not measured"
    )


def schedule_lines(made: OperatingMap) -> Iterator[str]:
    if made.schedule is None:
        yield "no schedule: too little of the mix was measured"
        return
    yield f"schedule, from the mix: {[list(entry) for entry in made.schedule]}"


def cost_rows(made: OperatingMap) -> list[list[str]]:
    """Workload, gain under the schedule, gain under the arm that is best for it alone in each cell."""
    return [
        [
            printable(cost.workload),
            bounds(cost.gain, cost.low, cost.high),
            NONE if cost.own_best_gain is None else f"{cost.own_best_gain:.2f}",
        ]
        for cost in made.costs
    ]


def cost_sentences(made: OperatingMap) -> Iterator[str]:
    for name, gain, best in cost_rows(made):
        yield f"{name}: {gain} under the schedule, {best} under what is best for it alone"
