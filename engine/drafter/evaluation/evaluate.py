"""The last stage: what a head is worth, measured on the engine that serves. Acceptance by kind, draft length and
temperature on held-out prompts; then tokens/s against no speculation and against n-grams, in blocks that take turns.

Three engines are loaded, without a drafter, with the head, and with n-grams; one works at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from engine.drafter.evaluation import acceptance_run, heads, throughput_run
from engine.drafter.evaluation.arms import Arm, ArmError, Ready, opening
from engine.drafter.evaluation.heads import HeadError
from engine.drafter.evaluation.result import FULL, PLANS, TINY, Evaluation, Plan, this_machine
from engine.drafter.evaluation.serving import EvaluationError, Serve
from engine.drafter.evaluation.text import table
from engine.drafter.prompts import Prompt
from engine.drafter.work import Narrate
from engine.launch import EngineSpec
from engine.models import ModelPath, identify

MAX_K: Final = 4
CONTEXT: Final = 1024
"""Tokens of prompt and answer; a longer prompt is left out."""

_WORDS: Final = {"head": "the head", "none": "no drafter", "ngram": "n-grams"}


def evaluate(
    head: Path, target: ModelPath, prompts: Sequence[Prompt], plan: Plan, narrate: Narrate = lambda line: None
) -> Evaluation:
    """Measure `head` on `prompts` (held-out ones, else the figures are too good).

    Raises:
        HeadError: not an EAGLE head for this target.
        ArmError: an engine did not start or did not go on.
        EvaluationError: no prompt is of use.
    """
    method = heads.check(head, target)
    with _engines(head, target, plan, narrate) as (engines, ready):
        accepted = acceptance_run.accept(engines["head"], prompts, plan.acceptance, narrate)
        timed = throughput_run.race(engines, prompts, plan.throughput, narrate)
    return Evaluation(
        date=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        machine=this_machine(ready.device),
        vllm=ready.vllm,
        target=target.identity,
        head=identify(head).identity,
        method=method,
        plan=plan,
        acceptance=tuple(accepted),
        throughput=tuple(timed),
    )


@contextmanager
def _engines(
    head: Path, target: ModelPath, plan: Plan, narrate: Narrate
) -> Iterator[tuple[Mapping[str, Serve], Ready]]:
    """Those that the plan needs, loaded one after the other, and what the last of them said of itself."""
    drafters = {"head": str(head.resolve())} | ({"none": "none", "ngram": "ngram"} if plan.throughput else {})
    batches = [plan.acceptance.batch] if plan.acceptance else []
    batches += plan.throughput.batches if plan.throughput else ()
    with ExitStack() as stack:
        engines: dict[str, Serve] = {}
        for name, drafter in drafters.items():
            narrate(f"evaluate: loading the engine with {_WORDS[name]}")
            spec = EngineSpec(
                model=target.path, drafter=drafter, max_k=MAX_K, max_num_seqs=max(batches), max_model_len=CONTEXT
            )
            arm = Arm(_WORDS[name], opening(spec, target, as_served=plan.as_served))
            stack.callback(arm.close)
            ready = arm.ready()
            engines[name] = arm.serve
        yield engines, ready


__all__ = [
    "FULL", "PLANS", "TINY", "ArmError", "Evaluation", "EvaluationError", "HeadError", "Plan", "evaluate", "table",
]  # fmt: skip
