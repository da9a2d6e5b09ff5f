"""What speculation must not change: answers at temperature 0, the distribution of sampled ones, and the engine's life.

One engine with the head, in a process of its own; K = 0 in it is vLLM's plain sampling: what a step without drafts
emits comes from the plain sampler. `make accept` compares with an engine without a drafter, on a larger sample.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.drafter.evaluation.arms import REFUSED, Arm, Ask, Block, Served, opening
from engine.launch import EngineSpec
from engine.models import ModelError, read_config, resolve, resolve_drafter
from tests.engine.distribution import (
    LEAST_EXPECTED,
    PROMPTS,
    SIGNIFICANCE,
    TOKENS,
    Agreement,
    agreement,
    by_position,
    pooled,
    together,
)
from tests.engine.greedy import CHATS, LOGPROBS, Difference, differences, noise
from tests.engine.random_head import write_random_head
from tests.side_by_side import ONE_CORE

SAMPLES = 60
"""Of each prompt and arm."""

CHAT_TOKENS = 40


# The tests of the tests


VOCABULARY = range(3000)


def _tokens(temperature: float, count: int, seed: int) -> list[int]:
    """Few likely tokens and a long tail of rare ones: logits fall with the logarithm of the rank."""
    weights = [(rank + 1) ** (-1.3 / temperature) for rank in VOCABULARY]
    return random.Random(seed).choices(VOCABULARY, weights, k=count)


def _six_prompts(temperature: float, seed: int, count: int = SAMPLES) -> list[list[int]]:
    return [_tokens(temperature, count, seed + number) for number in range(len(PROMPTS))]


def _verdict(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> float:
    return together([agreement(left, right) for left, right in zip(first, second, strict=True)]).p


def test_equal_distributions_pass_at_the_rate_that_they_should() -> None:
    values = [_verdict(_six_prompts(0.8, 100 * run), _six_prompts(0.8, 100 * run + 50)) for run in range(300)]
    assert min(values) > SIGNIFICANCE
    assert 0.01 <= sum(value < 0.05 for value in values) / 300 <= 0.10, "p is uniform, so the approximation holds"


def test_wrong_distributions_are_found() -> None:
    for run in range(20):
        right = _six_prompts(0.8, 100 * run)
        assert _verdict(right, _six_prompts(1.2, 100 * run + 50)) < SIGNIFICANCE, "another temperature"
        assert _verdict(right, [[0] * SAMPLES] * len(PROMPTS)) < SIGNIFICANCE, "greedy"


def test_the_sample_of_the_acceptance_run_finds_one_draft_in_seven_that_is_accepted_wrongly() -> None:
    count = 700
    right = _six_prompts(0.8, 1, count)
    wrong = [
        [0 if place % 7 == 0 else token for place, token in enumerate(one)] for one in _six_prompts(0.8, 50, count)
    ]
    assert _verdict(right, wrong) < SIGNIFICANCE


def test_rare_tokens_are_pooled_until_each_expectation_is_large_enough() -> None:
    first = {"a": 60, "b": 30, "c": 3, "d": 2, "e": 1}
    second = {"a": 30, "b": 12, "c": 2, "f": 1}
    table = pooled(first, second)
    smaller, total = 45, 141
    assert all(sum(pair) * smaller / total >= LEAST_EXPECTED for pair in table)
    assert [sum(column) for column in zip(*table, strict=True)] == [96, 45]
    assert agreement("aaaa", "aaab") == Agreement(0.0, 0, 1)


def test_a_difference_is_weighed_by_how_close_the_two_tokens_were() -> None:
    plain = Served([5, 6, 7], top=[[(5, -0.1), (9, -3.0)], [(6, -0.70), (8, -0.72)], [(7, -0.1), (1, -2.0)]])
    near = Served([5, 8, 1], top=[[(5, -0.16), (9, -3.0)], [(8, -0.70), (6, -0.71)], [(1, -0.1), (7, -2.0)]])
    assert differences([plain, plain], [near, plain]) == [Difference(0, 1, pytest.approx(0.02))]
    assert differences([plain], [Served([5, 9])])[0].gap == math.inf
    assert differences([plain], [Served([5, 6])])[0].gap == math.inf
    assert noise([plain], [near]) == pytest.approx(0.06)  # of the first token: 2.90 and 2.84


# The engine


@pytest.fixture(scope="module")
def head(bundled_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The head that comes with specdeck; a random one, whose drafts are all refused, where there is none yet."""
    try:
        return Path(resolve_drafter("bundled").path)
    except ModelError:
        return write_random_head(bundled_model, tmp_path_factory.mktemp("random") / "head", "eagle3")


@pytest.fixture(scope="module")
def arm(head: Path) -> Iterator[Arm]:
    # A small token budget, so that a long prompt comes in chunks.
    spec = EngineSpec(drafter=str(head), max_k=4, max_num_seqs=24, max_num_batched_tokens=256, max_model_len=1024)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ONE_CORE.items():
            patch.setenv(name, value)
        arm = Arm("sampling", opening(spec, resolve("bundled"), as_served=False))
    try:
        arm.ready()
        yield arm
    finally:
        arm.close()


def _greedy(arm: Arm, k: int, batch: int) -> list[Served]:
    sampling = {"temperature": 0.0, "max_tokens": CHAT_TOKENS, "logprobs": LOGPROBS}
    return arm.serve(Block([Ask(text, sampling) for text in CHATS], batch, k)).served


@pytest.mark.engine
def test_temperature_0_answers_are_those_without_speculation(
    arm: Arm, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = _greedy(arm, 0, 12)
    shaped = noise(plain, _greedy(arm, 0, 3))
    compared = sum(len(one.tokens) for one in plain)
    for k in (1, 4):
        drafted = _greedy(arm, k, 12)
        assert sum(map(len, (one.verifications for one in drafted))) > 50
        found = differences(plain, drafted)
        with capsys.disabled():
            for one in found:
                print(f"\nK {k}: near tie in request {one.request} at token {one.position}, {one.gap:.3f} apart")
        record_property(f"near ties at K {k}", str(found))
        assert all(one.gap <= 2 * shaped for one in found), f"not near ties (batch shape moves {shaped:.3f})"
        assert len(found) <= 4
    assert compared > 300


def _serve(arm: Arm, k: int, **sampling: Any) -> dict[str, list[Served]]:
    """`SAMPLES` answers of `TOKENS` tokens to each prompt, the prompts in turn."""
    settings = {"temperature": 0.8, "max_tokens": TOKENS, "ignore_eos": True} | sampling
    done = arm.serve(Block([Ask(prompt, settings, chat=False) for _ in range(SAMPLES) for prompt in PROMPTS], 24, k))
    samples: dict[str, list[Served]] = {prompt: [] for prompt in PROMPTS}
    for number, one in enumerate(done.served):
        samples[PROMPTS[number % len(PROMPTS)]].append(one)
    return samples


def _tokens_of(samples: dict[str, list[Served]]) -> dict[str, list[list[int]]]:
    return {prompt: [one.tokens for one in served] for prompt, served in samples.items()}


def _sampled(arm: Arm, k: int, **sampling: Any) -> dict[str, list[list[int]]]:
    return _tokens_of(_serve(arm, k, **sampling))


@pytest.fixture(scope="module")
def plain(arm: Arm) -> dict[str, list[list[int]]]:
    return _sampled(arm, 0)


@pytest.mark.engine
def test_sampled_tokens_are_distributed_as_without_speculation(
    arm: Arm, plain: dict[str, list[list[int]]], head: Path
) -> None:
    drafted = _serve(arm, 4)
    for place, found in enumerate(by_position(plain, _tokens_of(drafted))):
        assert found.categories > 2 * len(PROMPTS) - 4, "prompts with several likely continuations"
        assert found.p > SIGNIFICANCE, f"token {place}"
    steps = [step for served in drafted.values() for one in served for step in one.verifications]
    assert any(accepted < drafted for drafted, accepted in steps), "some were refused"
    if "specdeck_target" in read_config(head):  # a trained one
        assert any(accepted for _, accepted in steps), "and some accepted: both ways to a token were tested"


@pytest.mark.engine
def test_another_temperature_on_this_engine_is_told_apart(arm: Arm, plain: dict[str, list[list[int]]]) -> None:
    warmer = by_position(plain, _sampled(arm, 4, temperature=1.2))
    assert max(found.p for found in warmer[:2]) < SIGNIFICANCE


@pytest.mark.engine
@pytest.mark.parametrize("limits", [{"top_k": 3}, {"top_k": 3, "top_p": 0.7}], ids=["top_k", "top_k and top_p"])
def test_top_k_and_top_p_hold_under_speculation(arm: Arm, limits: dict[str, Any]) -> None:
    drafted = _serve(arm, 4, logprobs=3, **limits)
    for found in by_position(_sampled(arm, 0, **limits), _tokens_of(drafted)):
        assert found.p > SIGNIFICANCE
    for served in drafted.values():
        for one in served:
            for token, top in zip(one.tokens, one.top, strict=True):
                # vLLM keeps tokens that are as likely as the third; `top` also holds the token where it is a fourth.
                assert dict(top)[token] >= top[2][1], "among the three most likely ones"


@pytest.mark.engine
def test_one_batch_holds_greedy_sampled_seeded_and_long_requests(arm: Arm) -> None:
    """Each gets what it asked for, and a second time the same where it must be."""
    text = CHATS[0]
    narrow = {"max_tokens": 16, "ignore_eos": True}
    long = "word " * 600 + text  # more than two budgets: its prefill comes in chunks
    asks = [
        Ask(text, narrow | {"temperature": 0.0, "logprobs": LOGPROBS}),
        Ask(text, narrow | {"temperature": 0.8, "top_k": 1}),
        Ask(text, narrow | {"temperature": 0.8, "top_p": 1e-6}),
        Ask(text, narrow | {"temperature": 0.2, "seed": 1}),
        Ask(text, narrow | {"temperature": 1.5, "seed": 2}),
        Ask(long, narrow | {"temperature": 0.8, "seed": 3}),
        Ask(long, narrow | {"temperature": 0.0}),
        Ask(text, narrow | {"temperature": 0.8, "seed": 4, "top_k": 5, "top_p": 0.9}),
    ]
    served = arm.serve(Block(asks, len(asks), 4)).served
    assert [one.reason for one in served] == ["length"] * len(asks)
    assert all(len(one.tokens) == 16 for one in served)
    greedy = [served[0]]
    for other in served[1:3]:
        found = differences(greedy, [other])
        assert all(one.gap < 0.3 for one in found), "one token to choose from is the most likely one"
    again = arm.serve(Block(asks, len(asks), 4)).served
    assert [one.tokens for one in again] == [one.tokens for one in served], "seeds hold, in the same company"
    for number in (3, 5):
        alone = [arm.serve(Block([asks[number]], 1, 4)).served[0].tokens for _ in range(2)]
        assert alone[0] == alone[1]
        assert len(alone[0]) == 16


@pytest.mark.engine
def test_what_speculation_cannot_do_is_refused_and_the_engine_lives(arm: Arm) -> None:
    text = CHATS[0]
    asks = [
        Ask(text, {"temperature": 0.8, "min_p": 0.1, "max_tokens": 4}),
        Ask("word " * 2000, {"max_tokens": 4}),
        Ask(text, {"temperature": -1.0, "max_tokens": 4}),
        Ask(text, {"temperature": 0.0, "max_tokens": 4}),
    ]
    served = arm.serve(Block(asks, 4, 4)).served
    assert [one.reason for one in served] == [REFUSED] * 3 + ["length"]
    assert "min_p" in served[0].refusal
    assert "1024" in served[1].refusal
    assert "temperature" in served[2].refusal
