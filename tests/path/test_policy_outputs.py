"""What a client is answered at temperature 0 does not hang on the policy: not on mode, hint or lane.

vLLM itself answers differently with another batch shape where two tokens are about equally likely: by how much its
numbers move is measured with speculation off, and prompts that part ways at such a place are listed and not counted.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from console.feed.protocol import PolicySet
from engine.records import PolicyMode
from tests.path.policies import set_policy
from tests.path.served import Served

pytestmark = pytest.mark.engine

TOKENS = 48
SCHEDULE = PolicyMode(mode="schedule", schedule=[(1, 2, 4), (3, 8, 2), (9, 32, 1)])
PROMPTS = (
    "The capital of France is",
    "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n",
    "Question: Why is the sky blue?\nAnswer:",
    "one two three four five six seven eight nine ten. one two three",
    "Once upon a time there was a small dog who",
    "SELECT name, count(*) FROM orders",
    "The first ten even numbers are 2, 4, 6,",
    "Dear Sir or Madam,\n\nI am writing to",
    "import numpy as np\n\n\ndef mean(values):\n",
    "Water boils at 100 degrees. Ice melts at",
    "- apples\n- pears\n- plums\n-",
    '{"name": "Ann", "age": 31}\n{"name": "Bob", "age":',
    "In the year 1969 the first man",
    "<html>\n<head>\n<title>",
)


class Answer(NamedTuple):
    tokens: list[int]
    gaps: list[float]
    """By how much the likelier of the two likeliest tokens led at each place, in log-probability."""


@pytest.fixture(scope="module")
def answers(served: Served) -> dict[str, list[Answer]]:
    """Under every policy the answers to all prompts, eight at a time; with speculation off also two at a time."""
    found = {}
    for name, wanted in (
        ("off", PolicySet(policy=PolicyMode(mode="off"))),
        ("adaptive", PolicySet(policy=PolicyMode(mode="adaptive", act=True))),
        ("schedule", PolicySet(policy=SCHEDULE)),
        ("static", PolicySet(policy=PolicyMode(mode="static", k=4), lanes={"laned": "vanilla"})),
    ):
        set_policy(served, wanted)
        found[name] = _all(served, {})
        if name == "off":
            found["off by two"] = _all(served, {}, at_once=2)
    found["hint"] = _all(served, {"disable_speculation": 1})
    found["lane"] = _all(served, {"workload": "laned"})
    set_policy(served, PolicySet(lanes={"laned": "speculative"}))
    return found


def _all(served: Served, xargs: dict[str, Any], at_once: int = 8) -> list[Answer]:
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda prompt: _one(served, prompt, xargs), PROMPTS))


def _one(served: Served, prompt: str, xargs: dict[str, Any]) -> Answer:
    body = {
        "prompt": prompt, "max_tokens": TOKENS, "temperature": 0.0, "ignore_eos": True, "logprobs": 2,
        "return_token_ids": True, "vllm_xargs": {"workload": "outputs"} | xargs,
    }  # fmt: skip
    choice = served.complete(body)["choices"][0]
    likeliest = [sorted(place.values(), reverse=True) for place in choice["logprobs"]["top_logprobs"]]
    return Answer(choice["token_ids"], [two[0] - two[1] if len(two) > 1 else 9.0 for two in likeliest])


def _parting(one: Answer, other: Answer) -> int | None:
    """The first place where they differ."""
    return next(
        (place for place, two in enumerate(zip(one.tokens, other.tokens, strict=True)) if two[0] != two[1]), None
    )


def _noise(answers: dict[str, list[Answer]]) -> float:
    """By how much vLLM's own gaps move between batch shapes, as long as the tokens are the same."""
    moved = [0.0]
    for one, other in zip(answers["off"], answers["off by two"], strict=True):
        same = _parting(one, other)
        pairs = list(zip(one.gaps, other.gaps, strict=True))[: None if same is None else same + 1]
        moved += [abs(here - there) for here, there in pairs]
    return max(moved)


@pytest.mark.parametrize("name", ["static", "schedule", "adaptive", "hint", "lane"])
def test_the_tokens_are_those_of_an_engine_that_does_not_speculate(answers: dict[str, list[Answer]], name: str) -> None:
    noise, close = _noise(answers), []
    assert noise < 1.0, "gaps that move by more would excuse anything"
    for prompt, plain, found in zip(PROMPTS, answers["off"], answers[name], strict=True):
        assert len(found.tokens) == len(plain.tokens) == TOKENS
        place = _parting(plain, found)
        if place is not None:
            told = f"{prompt!r} at token {place}: the likelier token leads by {plain.gaps[place]:.3f}"
            assert plain.gaps[place] <= noise, f"{told}, noise {noise:.3f}"
            close.append(told)
    print(f"{name}: {len(PROMPTS) - len(close)} of {len(PROMPTS)} identical, noise {noise:.3f}; not counted: {close}")
    assert len(close) <= len(PROMPTS) // 3, f"too few are left to show anything: {close}"


def test_each_way_did_what_it_is_called(served: Served, answers: dict[str, list[Answer]]) -> None:
    """Only what drafted can have spoilt an answer."""
    assert answers
    limits = _limits(served)
    assert limits["outputs"].keys() >= {"off", "hint", "schedule", "static"}
    assert limits["outputs"]["off"] == limits["outputs"]["hint"] == {0}
    assert limits["outputs"]["static"] == {4}
    assert 2 in limits["outputs"]["schedule"]
    assert limits["laned"] == {"lane": {0}}


def _limits(served: Served) -> dict[str, dict[str, set[int]]]:
    """By workload and limit the draft lengths asked for."""
    from engine.records import SequenceRecord, StepRecord

    names: dict[str, str] = {}
    found: dict[str, dict[str, set[int]]] = {"outputs": {}, "laned": {}}
    for record in served.records():
        if isinstance(record, SequenceRecord):
            names[record.seq] = record.workload or ""
        elif isinstance(record, StepRecord):
            for row in record.rows:
                if names.get(row.seq) in found and row.cause != "prefill":
                    found[names[row.seq]].setdefault(row.limit, set()).add(row.k_asked)
    return found
