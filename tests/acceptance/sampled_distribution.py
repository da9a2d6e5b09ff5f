"""Speculation with the bundled head changes no distribution: against an engine without a drafter.

At temperature 0 the answers to held-out prompts are the same token by token; where they are not, it is a near tie of
the target's two most likely tokens, and is listed. At temperature 0.8 the first tokens of short prompts are compared by
a chi-square test, with and without seeds. Holds when no test finds a difference, when one does find another
temperature (the sample is large enough to tell), and when drafts were both accepted and refused.
"""

from __future__ import annotations

import sys
from math import isfinite
from typing import Any

from engine.drafter.evaluation.arms import Arm, Ask, Block, Served, opening
from engine.drafter.prompts import build
from engine.drafter.recipe import FULL
from engine.launch import EngineSpec
from engine.models import resolve, resolve_drafter
from tests.acceptance.result import write
from tests.engine.distribution import PROMPTS, SIGNIFICANCE, TOKENS, by_position
from tests.engine.greedy import LOGPROBS, Difference, differences, noise

SAMPLES = 700
"""Of each prompt: 4,200 in an arm."""

ANSWERS = 64
ANSWER_TOKENS = 96
LENGTHS = (1, 2, 4)

_PIECE = 50 * len(PROMPTS)


def main() -> bool:
    head, target = resolve_drafter("bundled"), resolve("bundled")
    arms = {}
    try:
        for name, drafter in (("none", "none"), ("head", head.path)):
            _say(f"loading the engine: {name}")
            spec = EngineSpec(model=target.path, drafter=drafter, max_k=4, max_num_seqs=24, max_model_len=1024)
            arms[name] = Arm(name, opening(spec, target))
            arms[name].ready()
        greedy, greedy_holds = _greedy(arms)
        sampled, sampled_holds = _sampled(arms)
    finally:
        for arm in arms.values():
            arm.close()
    identities = {"target": target.identity, "head": head.identity}
    print(write("sampled_distribution", identities | {"temperature 0": greedy, "temperature 0.8": sampled}))
    return greedy_holds and sampled_holds


# Temperature 0


def _greedy(arms: dict[str, Arm]) -> tuple[dict[str, Any], bool]:
    plain = _answers(arms["none"], 0, 16)
    moved = max(noise(plain, _answers(arms["none"], 0, batch)) for batch in (1, 4))
    ties: dict[str, list[dict[str, Any]]] = {}
    holds = True
    for k in (0, *LENGTHS):
        found = differences(plain, _answers(arms["head"], k, 16))
        ties[f"K {k}"] = [one._asdict() | {"gap": one.gap if isfinite(one.gap) else None} for one in found]
        holds &= all(one.gap <= 2 * moved for one in found)
        _tell(k, found, moved)
    tokens = sum(len(one.tokens) for one in plain)
    print(f"temperature 0: {ANSWERS} answers, {tokens} tokens; the batch's shape moves a gap by {moved:.3f}")
    return {"answers": ANSWERS, "tokens": tokens, "batch_noise": moved, "near_ties": ties, "holds": holds}, holds


def _answers(arm: Arm, k: int, batch: int) -> list[Served]:
    chosen = [prompt.text for prompt in build(FULL).held_out if prompt.kind in ("chat", "code")]
    sampling = {"temperature": 0.0, "max_tokens": ANSWER_TOKENS, "logprobs": LOGPROBS}
    _say(f"temperature 0: {arm.name}, K {k}, batch {batch}")
    return arm.serve(Block([Ask(text, sampling) for text in _spread(chosen)], batch, k)).served


def _spread(texts: list[str]) -> list[str]:
    return texts[:: max(1, len(texts) // ANSWERS)][:ANSWERS]


def _tell(k: int, found: list[Difference], moved: float) -> None:
    for one in found:
        what = "near tie" if one.gap <= 2 * moved else "NO near tie"
        print(f"K {k}: answer {one.request}, token {one.position}: {what}, {one.gap:.3f} apart")


# Temperature 0.8


def _sampled(arms: dict[str, Arm]) -> tuple[dict[str, Any], bool]:
    plain, _ = _samples(arms["none"], 0, 0.8)
    tests: dict[str, list[float]] = {}
    counts = [0, 0]
    for name, k, seeds in (("K 1", 1, None), ("K 2", 2, None), ("K 4", 4, None), ("K 4, seeded", 4, 1_000_000)):
        samples, verified = _samples(arms["head"], k, 0.8, seeds)
        tests[name] = [found.p for found in by_position(plain, samples)]
        counts = [counts[0] + verified[0], counts[1] + verified[1]]
        print(f"temperature 0.8, {name}: p of the first {TOKENS} tokens " + ", ".join(f"{p:.3g}" for p in tests[name]))
    warmer, _ = _samples(arms["head"], 4, 0.9)
    control = [found.p for found in by_position(plain, warmer)]
    print("temperature 0.9 instead: p " + ", ".join(f"{p:.3g}" for p in control))
    drafted, accepted = counts
    verdicts = {
        "no test finds a difference": min(p for found in tests.values() for p in found) > SIGNIFICANCE,
        "temperature 0.9 is told apart": min(control) < SIGNIFICANCE,
        "drafts were accepted and refused": 0 < accepted < drafted,
    }
    for claim, held in verdicts.items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim}")
    figures = {"samples": SAMPLES * len(PROMPTS), "prompts": PROMPTS, "significance": SIGNIFICANCE, "p": tests}
    figures |= {"p_at_0.9": control, "drafted": drafted, "accepted": accepted, "verdicts": verdicts}
    return figures, all(verdicts.values())


def _samples(
    arm: Arm, k: int, temperature: float, seeds: int | None = None
) -> tuple[dict[str, list[list[int]]], tuple[int, int]]:
    """Token lists by prompt, and how many tokens were drafted and accepted. `seeds`: the first of as many seeds."""
    numbers = range(SAMPLES * len(PROMPTS))
    sampling = {"temperature": temperature, "max_tokens": TOKENS, "ignore_eos": True}
    asks = [
        Ask(PROMPTS[number % len(PROMPTS)], sampling | ({} if seeds is None else {"seed": seeds + number}), chat=False)
        for number in numbers
    ]
    samples: dict[str, list[list[int]]] = {prompt: [] for prompt in PROMPTS}
    drafted = accepted = 0
    for start in range(0, len(asks), _PIECE):
        _say(f"temperature {temperature:g}: {arm.name}, K {k}, sample {start} of {len(asks)}")
        piece = asks[start : start + _PIECE]
        for ask, one in zip(piece, arm.serve(Block(piece, 24, k)).served, strict=True):
            samples[ask.prompt].append(one.tokens)
            drafted += sum(d for d, _ in one.verifications)
            accepted += sum(a for _, a in one.verifications)
    return samples, (drafted, accepted)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
