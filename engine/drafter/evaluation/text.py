"""An evaluation as plain text, for terminals and cards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from engine.drafter.evaluation.acceptance import Acceptance, Estimate
from engine.drafter.evaluation.result import Evaluation, ThroughputPlan
from engine.drafter.evaluation.throughput import Ratio, Throughput

_ABSENT: Final = "—"

_ACCEPTANCE: Final = """\
Acceptance on held-out prompts, 95 % intervals over requests. AL: mean acceptance length, the bonus token included;
pos i: share of draft steps whose draft token i (from 0) was accepted; cond i: of those whose token i - 1 was."""

_THROUGHPUT: Final = """\
Tokens/s and, in brackets, the ratio to no speculation with its 95 % interval. {rounds} rounds of blocks in turn;
answers of {tokens} tokens at temperature 0 to {kinds} prompts; prefill included; while the batch is full.

"""


def table(evaluation: Evaluation) -> str:
    parts = [_origin(evaluation)]
    if evaluation.acceptance:
        parts.append(_acceptance(evaluation.acceptance))
    if evaluation.throughput and evaluation.plan.throughput is not None:
        parts.append(_throughput(evaluation.throughput, evaluation.plan.throughput))
    return "\n\n".join(parts)


def _origin(evaluation: Evaluation) -> str:
    machine = evaluation.machine
    place = machine.gpu or f"{machine.cores} cores of {machine.cpu}"
    lines = [
        f"head    {evaluation.head} ({evaluation.method})",
        f"target  {evaluation.target}",
        f"vLLM {evaluation.vllm} on {place}; {evaluation.date} UTC; plan {evaluation.plan.name}",
    ]
    if not evaluation.plan.as_served:
        lines.append("Not as served: nothing was compiled, so in service the speeds are others.")
    return "\n".join(lines)


def _acceptance(found: Sequence[Acceptance]) -> str:
    deepest = max(one.k for one in found)
    heads = ["kind", "T", "K", "requests", "draft steps", "AL", *(f"pos {place}" for place in range(deepest))]
    heads += [f"cond {place}" for place in range(1, deepest)]
    rows = [_acceptance_row(one, deepest) for one in found]
    return _ACCEPTANCE + "\n\n" + _aligned([heads, *rows])


def _acceptance_row(one: Acceptance, deepest: int) -> list[str]:
    cells = [one.kind, f"{one.temperature:g}", str(one.k), f"{one.requests:,}", f"{one.draft_steps:,}"]
    cells.append(_with_interval(one.length))
    marginal = [_with_interval(one.positions[0].marginal)]
    marginal += [_plain(position.marginal) for position in one.positions[1:]]
    conditional = [_plain(position.conditional) for position in one.positions[1:]]
    return cells + _filled(marginal, deepest) + _filled(conditional, deepest - 1)


def _filled(cells: list[str], count: int) -> list[str]:
    return cells + [""] * (count - len(cells))


def _throughput(found: Sequence[Throughput], plan: ThroughputPlan) -> str:
    by_batch = {batch: list(speeds) for batch, speeds in groupby(found, key=lambda one: one.batch)}
    heads = ["arm", *(f"batch {batch}" for batch in by_batch)]
    arms = [one.arm for one in next(iter(by_batch.values()))]
    rows = [[arm, *(_throughput_cell(speeds[place]) for speeds in by_batch.values())] for place, arm in enumerate(arms)]
    return _THROUGHPUT.format(rounds=plan.rounds, tokens=plan.tokens, kinds=" and ".join(plan.kinds)) + _aligned(
        [heads, *rows]
    )


def _throughput_cell(one: Throughput) -> str:
    rate = f"{one.tokens_per_second:.1f}"
    return rate if one.ratio is None else f"{rate} ({_ratio(one.ratio)})"


def _ratio(found: Ratio) -> str:
    if found.low is None or found.high is None:
        return f"{found.value:.2f}"
    return f"{found.value:.2f}, {found.low:.2f}–{found.high:.2f}"


def _with_interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return _plain(found)
    return f"{_plain(found)} ({found.low:.2f}–{found.high:.2f})"


def _plain(found: Estimate) -> str:
    return _ABSENT if found.value is None else f"{found.value:.3f}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, figures to the right; the first row is the heads."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
