"""Why a cell of the operating map says what it says: formula, counts, interval and what was left out. Pure."""

from __future__ import annotations

import textwrap
from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, clean, left
from console.app.explaining.section import Drawn, Section
from console.app.map import words
from console.app.map.cell import arm_table, cell_title, cost_lines
from store.operating_map.fingerprint import Fingerprint
from store.operating_map.records import MapCell, OperatingMap

_OF_A_WORKLOAD: Final = (
    "tokens/s = Σ emitted / Σ step duration over the workload's decode rows in steps with {load}: what one sequence of "
    "it gets beside its neighbours."
)
_OF_THE_MIX: Final = (
    "tokens/s = mean running / Σ (a workload's share of the plan's tokens / its tokens/s per sequence) in steps with "
    "{load}: for the whole batch, at the plan's mix and not at whatever mix an arm happened to meet."
)
_GAIN: Final = (
    "gain = tokens/s of the arm over those of {baseline}, the best ordinary path, in the same repeat and so over the "
    "same requests, weighed at equal numbers running: not quite the quotient of the tokens/s above, which were made at "
    "different loads. {whole}"
)
_WHOLE: Final = "Of the mix it is put together from the gains of its workloads."
_INTERVAL: Final = (
    "Interval: 95 %, Student's t on log ratios. What arms and repeats don't explain is the noise, pooled over all arms "
    "({repeats} repeats)."
)
_ONE_PASS: Final = "Interval: none. There was one pass, and nothing is promised from one pass."
_BEST: Final = (
    "Best: of the arms that can't be told from the fastest, the one that drafts least. No difference: one that drafts "
    "and one that does not are among them."
)
_LEFT_OUT: Final = (
    "Arms with too few steps at this load, rows that end a prefill, other traffic than the plan's. Not in it: waiting "
    "in the queue. The equal-arrival speedup of the rehearsal's report counts that; the Live screen's speedup is a "
    "third figure, of live traffic."
)
_NO_SQL: Final = (
    "None: a map is made from the rehearsal's own folder ({id}), in which every arm has a store of its own; the "
    "station's store holds the finished map. `specdeck rehearse --report` makes it anew from that folder."
)


def cell_section(map_: OperatingMap, cell: MapCell, stale: list[str]) -> Section:
    """The same as a section of an explanation."""
    return Section(cell_title(map_, cell), "", [Drawn(lambda width: explain_cell(map_, cell, stale, width)[2:])])


def explain_cell(map_: OperatingMap, cell: MapCell, stale: list[str], width: int) -> list[Line]:
    """Everything about one cell, so that it can be recomputed from the rehearsal's folder."""
    load = words.range_words((cell.first, cell.last))
    lines: list[Line] = [((clean(cell_title(map_, cell)), "bright"),), EMPTY]
    lines += _text(words.verdict(map_, cell), width, "text")
    lines += cost_lines(map_, cell.workload, width)
    if stale:
        lines += _text(f"▲ The map is stale, {words.stale_words(stale)}.", width, "warn")
    if cell.arms:
        lines += [EMPTY, *arm_table(map_, cell)]
    lines += [EMPTY, (("Formula", "bright"),)]
    lines += _text((_OF_THE_MIX if cell.workload is None else _OF_A_WORKLOAD).format(load=load), width)
    lines += _text(_GAIN.format(baseline=map_.baseline, whole=_WHOLE if cell.workload is None else ""), width)
    lines += _text(_INTERVAL.format(repeats=map_.repeats) if map_.repeats > 1 else _ONE_PASS, width)
    lines += _text(_BEST, width)
    lines += [EMPTY, (("Left out", "bright"),), *_text(_LEFT_OUT, width)]
    for note in map_.notes:
        lines += _text(note, width)
    lines += [EMPTY, (("SQL", "bright"),), *_text(_NO_SQL.format(id=map_.id), width)]
    return [*lines, EMPTY, (("Measured on", "bright"),), *_identity(map_, width)]


def _identity(map_: OperatingMap, width: int) -> list[Line]:
    made = f"{numbers.day(map_.ts)} {numbers.clock(map_.ts)}, plan {map_.plan}, rehearsal {map_.id}"
    facts = {"made": made, **_facts(map_.fingerprint)}
    lines: list[Line] = []
    for name, value in facts.items():
        parts = textwrap.wrap(clean(value), max(20, width - 18))
        lines += [
            ((left(f"  {name if row == 0 else ''}", 18), "dim"), (part, "text")) for row, part in enumerate(parts)
        ]
    return lines


def _facts(of: Fingerprint) -> dict[str, str]:
    def shown(value: object) -> str:
        return "unknown" if value is None else str(value)

    return {
        "model": of.model_version,
        "vLLM": of.vllm,
        "hardware": of.hardware,
        "parallel": f"{of.topology} (data/tensor/pipeline)",
        "largest K": str(of.max_k),
        "largest batch": str(of.max_num_seqs),
        "longest context": shown(of.max_model_len),
        "token budget": shown(of.max_num_batched_tokens),
        "runner": shown(of.runner),
        "graph mode": shown(of.graph_mode),
        "scheduling": "asynchronous" if of.async_scheduling else "synchronous",
    }


def _text(text: str, width: int, role: Role = "dim") -> list[Line]:
    return [((line, role),) for line in textwrap.wrap(clean(text), max(20, width))]
