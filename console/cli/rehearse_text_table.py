"""A rehearsal in the terminal: the figures that decide, a chart, the map. The rest is in its Markdown and JSON."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Final

from console.cli.figures_text import printable
from console.cli.map_text import cost_sentences, grid, legend, schedule_lines
from console.cli.rehearse_text_charts import gain_chart
from console.cli.rehearse_text_rows import by_phase, fallback_sentences, fewer_repeats, held, tax_sentence, whole_pass
from console.cli.rehearse_text_words import WIDTH, filled, in_blocks, short_ratio
from store.operating_map.records import OperatingMap
from store.rehearsal.result_records import RehearsalResult


def table(result: RehearsalResult, made: OperatingMap | None, width: int | None = None) -> list[str]:
    """Lines of at most `width` columns; None: as wide as the terminal, at least 80.

    `made`: None where no fixed arm was measured.
    """
    wide = terminal_width() if width is None else width
    lines = [*_head(result, wide)]
    for title, (header, rows) in (
        (f"equal-arrival speedup over {result.baseline}, queueing included", by_phase(result, "speedup", short_ratio)),
        ("busy tokens/s (more where an arm lets more sequences pile up)", by_phase(result, "busy")),
        ("the whole pass", _columns(whole_pass(result))),
    ):
        lines += ["", title, *in_blocks(header, rows, wide)]
    if made is not None:
        chart = gain_chart(made, wide)
        lines += ["", *chart] if chart else []
        lines += ["", f"operating map, gains over {made.baseline}", *in_blocks(*grid(made), wide)]
        lines += filled([legend(made)], wide, "  ")
        lines += ["", *filled(schedule_lines(made), wide), *filled(cost_sentences(made), wide, "  ")]
    if result.holding:
        lines += ["", "against the fixed arms at equal load, on other repeats than they were chosen by"]
        lines += in_blocks(*held(result, short_ratio), wide)
    lines += ["", *filled(_closing(result, made), wide)]
    return [line.rstrip() for line in lines]


def terminal_width() -> int:
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


_SHOWN: Final = {3: "misses", 4: "goodput", 6: "E2E p50", 7: "p99", 9: "TTFT p99", 12: "waiting p99", 13: "α", 16: "K"}
"""Of the whole pass: the columns that decide, and their names when the others are not there."""


def _columns(of: tuple[list[str], list[list[str]]]) -> tuple[list[str], list[list[str]]]:
    return ["arm", *_SHOWN.values()], [[row[0], *(row[at] for at in _SHOWN)] for row in of[1]]


def _head(result: RehearsalResult, width: int) -> list[str]:
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(result.started))
    of = result.fingerprint
    return filled(
        [
            f"rehearsal {printable(result.id, 60)}, plan {printable(result.plan.name)}, begun {when}",
            f"{printable(of.hardware, 200)}; {printable(of.model_version, 300)}",
            f"{len(result.passes)} of {result.passes_planned} passes, {result.plan.seconds:.0f} s of traffic each, on "
            + ("an engine of its own" if result.host == "own" else "the station's engine"),
        ],
        width,
    )


def _closing(result: RehearsalResult, made: OperatingMap | None) -> Iterator[str]:
    tax = tax_sentence(result.spec_tax)
    if tax is not None:
        yield tax
    if result.fallback is not None:
        yield "fallback test " + "; ".join(fallback_sentences(result.fallback))
    later = fewer_repeats(result)
    if later is not None:
        yield later
    yield from (f"warning: {printable(one, 400)}" for one in result.warnings)
    yield from (f"not known: {printable(one, 400)}" for one in result.unknown)
    yield from dict.fromkeys(printable(one, 400) for one in [*result.notes, *(made.notes if made is not None else [])])
