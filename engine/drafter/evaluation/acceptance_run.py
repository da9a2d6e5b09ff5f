"""Part one of an evaluation: each kind of prompts at each draft length and temperature, on the head's engine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from engine.drafter.evaluation.acceptance import Acceptance, measure
from engine.drafter.evaluation.arms import REFUSED, Ask, Block, Served
from engine.drafter.evaluation.result import AcceptancePlan
from engine.drafter.evaluation.serving import EvaluationError, Serve, executed, pieces
from engine.drafter.progress import Progress
from engine.drafter.prompts import Prompt
from engine.drafter.recipe import KINDS
from engine.drafter.work import Narrate


def accept(serve: Serve, prompts: Sequence[Prompt], plan: AcceptancePlan | None, narrate: Narrate) -> list[Acceptance]:
    """One figure for each cell of the plan, in the order of the table.

    Raises:
        EvaluationError: no prompts.
    """
    if plan is None:
        return []
    chosen = {kind: [prompt for prompt in prompts if prompt.kind == kind][: plan.prompts] for kind in KINDS}
    kinds = [kind for kind in KINDS if chosen[kind]]
    if not kinds:
        raise EvaluationError("no held-out prompts; give a recipe that has some")
    cells = list(product(plan.temperatures, plan.lengths, kinds))
    progress = Progress("acceptance", "requests", sum(len(chosen[kind]) for *_, kind in cells), 0, narrate)
    return [_cell(serve, chosen[kind], k, temperature, plan, progress) for temperature, k, kind in cells]


def _cell(
    serve: Serve, prompts: Sequence[Prompt], k: int, temperature: float, plan: AcceptancePlan, progress: Progress
) -> Acceptance:
    kind = prompts[0].kind
    sampling = {"temperature": temperature, "max_tokens": plan.tokens}
    requests: list[Served] = []
    for piece in pieces(prompts):
        done = serve(Block([Ask(prompt.text, sampling) for prompt in piece], plan.batch, k))
        requests += [one for one in done.served if one.reason != REFUSED]
        progress.advance(len(piece), f"{kind}, K {k}, temperature {temperature:g}")
    steps = executed([one.verifications for one in requests], k)
    return measure(kind, k, temperature, sum(len(one.tokens) for one in requests), steps)
