"""A what-if as text: a line a bucket, recorded → predicted with bounds, naive dim beside, and what was assumed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import click

from console.cli.figures_text import NONE, printable, rate
from engine.policy import describe
from store.whatif.figures import Predicted, Recorded, WhatIf, WhatIfBucket

_HEADER: Final = (
    "workload", "context", "temp", "K", "tokens/step", "bounds", "naive", "exact", "tokens/s", "95 %",
)  # fmt: skip
_LEFT: Final = 3
_DIM: Final = 6


def as_text(answer: WhatIf) -> str:
    """The table of one policy and its notes."""
    rows = [_cells(one, (printable(one.workload), one.context, one.temperature)) for one in answer.buckets]
    if len(rows) != 1:
        rows.append(_cells(answer, ("all", "", "")))
    widths = [max(len(row[column]) for row in (_HEADER, *rows)) for column in range(len(_HEADER))]
    lines = [f"{describe(answer.policy)}, over {answer.decode_rows} recorded steps of sequences: recorded → predicted"]
    lines += [_line(row, widths) for row in (_HEADER, *rows)]
    if answer.no_seconds is not None:
        lines.append(f"no tokens/s: {answer.no_seconds}")
    else:
        lines.append("tokens/s at the recorded batch, pauses as they were: for clients that wait for their answers")
    lines.append("naive: min(accepted, K) over the recorded steps, exact only where those start")
    return "\n".join([*lines, *(printable(note, 400) for note in answer.notes)])


def _cells(of: WhatIf | WhatIfBucket, name: tuple[str, str, str]) -> tuple[str, ...]:
    recorded, predicted = of.recorded, of.predicted
    return (
        *name,
        NONE if of.mean_k is None else f"{of.mean_k:.1f}".removesuffix(".0"),
        f"{rate(recorded.tokens_per_step)} → {rate(predicted.tokens_per_step)}",
        f"{rate(predicted.tokens_per_step_low)}–{rate(predicted.tokens_per_step_high)}",
        rate(predicted.naive_tokens_per_step),
        NONE if predicted.exact_share is None else f"{predicted.exact_share:.0%}",
        *_seconds(recorded, predicted),
    )


def _seconds(recorded: Recorded, predicted: Predicted) -> tuple[str, str]:
    before, after = recorded.tokens_per_second, predicted.tokens_per_second
    low, high = predicted.tokens_per_second_low, predicted.tokens_per_second_high
    bounds = NONE if low is None or high is None else f"{low:.1f}–{high:.1f}"
    return f"{_tenth(before)} → {_tenth(after)}", bounds


def _tenth(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if at < _LEFT else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    if "NO_COLOR" not in os.environ:
        cells[_DIM] = click.style(cells[_DIM], dim=True)
    return "  ".join(cells).rstrip()
