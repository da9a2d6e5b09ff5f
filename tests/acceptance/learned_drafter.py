"""The bundled head on the engine that serves: acceptance by kind, and tokens/s against no speculation at four loads.

Holds when, by the intervals, at batch 1 some K is faster than no speculation, at batch 16 none is and K = 4 is
slower, at batch 32 no K is faster than K = 0 and K = 2 and 4 are slower; when every kind has its acceptance;
and when chat and code at temperature 0 have what was asked of the head. Which of the head's arms is the fastest
at each batch is written beside it. Takes long, and wants the machine for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from engine.drafter import prompts
from engine.drafter.evaluation.evaluate import FULL, Evaluation, evaluate, table
from engine.drafter.evaluation.result import ThroughputPlan
from engine.drafter.evaluation.throughput import Throughput, ratio
from engine.drafter.recipe import FULL as RECIPE
from engine.drafter.recipe import KINDS
from engine.models import resolve, resolve_drafter
from tests.acceptance.result import write

BATCHES = (1, 4, 16, 32)
PLAN = msgspec.structs.replace(FULL, throughput=ThroughputPlan(rounds=4, tokens=96, batches=BATCHES))
SPECULATING = ("K 1", "K 2", "K 4")
ASKED = {"chat": 0.50, "code": 0.58}
"""Acceptance of a single draft token at temperature 0."""
ASKED_SECOND = 0.40
"""Acceptance of the second of two, given that the first was accepted."""


def main() -> bool:
    head, target = resolve_drafter("bundled"), resolve("bundled")
    found = evaluate(Path(head.path), target, prompts.build(RECIPE).held_out, PLAN, _say)
    verdicts = judged(found)
    print(table(found))
    for claim, held in verdicts.items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim}")
    best = fastest(found.throughput)
    print(f"fastest of the head's arms by batch: {best}")
    figures: dict[str, Any] = {"verdicts": verdicts, "best": best, "evaluation": msgspec.to_builtins(found)}
    print(write("learned_drafter", figures))
    return all(verdicts.values())


def judged(found: Evaluation) -> dict[str, bool]:
    return {
        "at batch 1 some K beats no speculation": _helps_alone(found.throughput),
        "at batch 16 no K beats no speculation, and K = 4 is slower": _useless_together(found.throughput),
        "at batch 32 no K beats K = 0, and K = 2 and 4 are slower": _zero_is_best(found.throughput),
        "acceptance of every kind": _accepted(found),
        "chat and code reach what was asked": _reached(found),
    }


def _helps_alone(found: Sequence[Throughput]) -> bool:
    """The lower end of an interval against no speculation, in an engine without a drafter, is above 1."""
    ratios = [one.ratio for one in found if one.batch == 1 and one.arm in SPECULATING and one.ratio is not None]
    return any(ratio.low is not None and ratio.low > 1 for ratio in ratios)


def _useless_together(found: Sequence[Throughput]) -> bool:
    """By the intervals against no speculation, in an engine without a drafter."""
    ratios = {one.arm: one.ratio for one in found if one.batch == 16 and one.ratio is not None}
    faster = any((ratios[arm].low or 0.0) > 1 for arm in SPECULATING)
    return not faster and (ratios["K 4"].high or 1.0) < 1


def _zero_is_best(found: Sequence[Throughput]) -> bool:
    """By the intervals of each arm against K = 0 of the same round."""
    rounds = {one.arm: one.rounds for one in found if one.batch == 32}
    ratios = {
        arm: ratio([rate / zero for rate, zero in zip(rounds[arm], rounds["K 0"], strict=True)]) for arm in SPECULATING
    }
    faster = any((one.low or 0.0) > 1 for one in ratios.values())
    return not faster and all((ratios[arm].high or 1.0) < 1 for arm in ("K 2", "K 4"))


def fastest(found: Sequence[Throughput]) -> dict[str, str]:
    """Batch → the fastest of the head's arms, by its point alone: neighbours may lie within the noise."""
    rates = {(one.batch, one.arm): one.tokens_per_second for one in found}
    return {str(batch): max(("K 0", *SPECULATING), key=lambda arm: rates[batch, arm]) for batch in BATCHES}


def _accepted(found: Evaluation) -> bool:
    cells = {(one.kind, one.k, one.temperature): one for one in found.acceptance}
    plan = PLAN.acceptance
    assert plan is not None
    wanted = [(kind, k, temperature) for kind in KINDS for k in plan.lengths for temperature in plan.temperatures]
    return all(cell in cells and cells[cell].length.low is not None for cell in wanted)


def _reached(found: Evaluation) -> bool:
    cells = {(one.kind, one.k): one.positions for one in found.acceptance if one.temperature == 0}
    first = {kind: cells[kind, 1][0].marginal.value or 0.0 for kind in ASKED}
    second = {kind: cells[kind, 2][1].conditional.value or 0.0 for kind in ASKED}
    return all(first[kind] >= ASKED[kind] and second[kind] >= ASKED_SECOND for kind in ASKED)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
