"""Charts of a rehearsal in the terminal: what each arm gains as more sequences run."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from store.operating_map.loads import shown
from store.operating_map.records import OperatingMap
from store.rehearsal.plan import fixed_k

_COLOURS: Final = ("blue+", "orange+", "green+", "magenta+", "cyan+", "red+")
_HEIGHT: Final = 15


def gain_chart(made: OperatingMap, width: int) -> list[str]:
    """Gain of each fixed arm over the baseline, by running sequences, for the mix; empty where less than two ranges can
    be joined. The points of an arm are its K, so that they can be told apart without colours."""
    mix = [cell for cell in made.cells if cell.workload is None]
    lines: dict[str, list[tuple[int, float]]] = {}
    for place, cell in enumerate(mix):
        for arm in cell.arms:
            if arm.gain is not None:
                lines.setdefault(arm.arm, []).append((place, arm.gain))
    measured = sorted({place for points in lines.values() for place, _ in points})
    if len(measured) < 2:
        return []
    import plotext

    chart: Any = plotext
    chart.clear_figure()
    chart.plotsize(min(width, 100), _HEIGHT)
    coloured = in_colour()
    chart.theme("clear")
    for place, (name, points) in enumerate(lines.items()):
        k = fixed_k(name)
        mark = str(k) if k is not None and k < 10 else name[-1]
        colour = _COLOURS[place % len(_COLOURS)] if coloured else None
        xs, ys = [x for x, _ in points], [y for _, y in points]
        chart.plot(xs, ys, marker="braille" if coloured else "dot", color=colour)
        chart.scatter(xs, ys, marker=mark, color=colour)
    chart.hline(1.0)
    chart.xticks(list(range(len(mix))), [shown((cell.first, cell.last)) for cell in mix])
    chart.xlim(-0.3, len(mix) - 0.7)
    chart.title(f"gain over {made.baseline} by running sequences; a mark is the arm's K")
    built = chart.build()
    chart.clear_figure()
    return [line.rstrip() for line in (built if coloured else chart.uncolorize(built)).splitlines()]


def in_colour() -> bool:
    """Whether the one who reads sees colours, and wants them."""
    return "NO_COLOR" not in os.environ and sys.stdout.isatty()
