"""Part two of an evaluation: the arms take turns at the same requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple

from engine.drafter.evaluation import throughput
from engine.drafter.evaluation.arms import Ask, Block
from engine.drafter.evaluation.result import ThroughputPlan
from engine.drafter.evaluation.serving import EvaluationError, Serve, executed, pieces
from engine.drafter.evaluation.throughput import BASELINE, Throughput, Timed
from engine.drafter.progress import Progress
from engine.drafter.prompts import Prompt
from engine.drafter.work import Narrate


class Contender(NamedTuple):
    """An arm of the comparison: which engine, at which draft length."""

    engine: str
    k: int


CONTENDERS: Final = {
    BASELINE: Contender("none", 0),
    "K 0": Contender("head", 0),
    "K 1": Contender("head", 1),
    "K 2": Contender("head", 2),
    "K 4": Contender("head", 4),
    "ngram K 4": Contender("ngram", 4),
}
"""By name, in the order of the table."""


def race(
    engines: Mapping[str, Serve], prompts: Sequence[Prompt], plan: ThroughputPlan | None, narrate: Narrate
) -> list[Throughput]:
    """Batches alternate within a round, so that every figure is spread over the whole time.

    Raises:
        EvaluationError: no prompt's answer is long enough.
    """
    if plan is None:
        return []
    sizes = {batch: max(plan.turns * batch, plan.requests) for batch in plan.batches}
    usable = _long_answers(engines["none"], prompts, plan, plan.rounds * sum(sizes.values()), narrate)
    asks = _endlessly([Ask(prompt.text, _fixed_length(plan)) for prompt in usable])
    for name, contender in CONTENDERS.items():  # the first block of an engine also pays for what it allocates
        narrate(f"throughput: warming up {name}")
        engines[contender.engine](Block([next(asks) for _ in range(2)], 2, contender.k))
    progress = Progress("throughput", "blocks", plan.rounds * len(sizes) * 2 * len(CONTENDERS), 0, narrate)
    rounds: dict[int, list[dict[str, Timed]]] = {batch: [] for batch in sizes}
    for number in range(plan.rounds):
        for batch, count in sizes.items():
            block = [next(asks) for _ in range(count)]
            rounds[batch].append(_round(engines, block, batch, number, progress))
    return list(chain.from_iterable(throughput.figures(batch, found) for batch, found in rounds.items()))


def _round(
    engines: Mapping[str, Serve], asks: Sequence[Ask], batch: int, number: int, progress: Progress
) -> dict[str, Timed]:
    found: dict[str, Timed] = {}
    for name in throughput.order(list(CONTENDERS), number):
        contender = CONTENDERS[name]
        done = engines[contender.engine](Block(asks, batch, contender.k))
        steps = executed([one.verifications for one in done.served], contender.k)
        before = found.get(name, Timed(0, 0.0, []))
        found[name] = Timed(before.tokens + done.tokens, before.seconds + done.seconds, before.verifications + steps)
        progress.advance(1, f"batch {batch}, {name}: {done.tokens / done.seconds:.0f} tokens/s")
    return {name: found[name] for name in CONTENDERS}


def _fixed_length(plan: ThroughputPlan) -> dict[str, Any]:
    """Every arm has the same work: the prompts' answers are that long, but for a near tie that ends one sooner."""
    return {"temperature": 0.0, "max_tokens": plan.tokens, "ignore_eos": True}


def _long_answers(
    serve: Serve, prompts: Sequence[Prompt], plan: ThroughputPlan, count: int, narrate: Narrate
) -> list[Prompt]:
    """Up to `count` prompts, the kinds in turn, whose answers go on for `plan.tokens`: with `ignore_eos` on a shorter
    answer, what follows its end would be measured, which no client ever asks for."""
    kinds = ([prompt for prompt in prompts if prompt.kind == kind] for kind in plan.kinds)
    candidates = [prompt for turn in zip_longest(*kinds) for prompt in turn if prompt is not None]
    progress = Progress("throughput", "prompts looked at for a long answer", len(candidates), 0, narrate)
    found: list[Prompt] = []
    for piece in pieces(candidates):
        asks = [Ask(prompt.text, {"temperature": 0.0, "max_tokens": plan.tokens}) for prompt in piece]
        served = serve(Block(asks, max(plan.batches), 0)).served
        found += [prompt for prompt, one in zip(piece, served, strict=True) if len(one.tokens) == plan.tokens]
        progress.advance(len(piece))
        if len(found) >= count:
            break
    if not found:
        raise EvaluationError(f"no held-out prompt has an answer of {plan.tokens} tokens: nothing to time")
    return found[:count]


def _endlessly(asks: Sequence[Ask]) -> Iterator[Ask]:
    while True:
        yield from asks
