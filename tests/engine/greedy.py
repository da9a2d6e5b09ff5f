"""Whether two runs at temperature 0 say the same, and where they may differ: batches of other shapes round differently,
so two tokens that the target holds almost equally likely can change places."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from engine.drafter.evaluation.arms import Served

LOGPROBS = 5
"""Asked for of the plain run: three tokens can be close too."""

CHATS = (
    "Write a short introduction to pensions.",
    "How long does it take to paint a room?",
    "Tell me something surprising about encryption.",
    "How would you explain democracy to a ten year old?",
    "How long does it take to wake up early?",
    "Write three questions about algebra and answer them.",
    "What is dinosaurs?",
    "Summarise the most important points about graphic design in one paragraph.",
    "What are the advantages and disadvantages of the Silk Road?",
    "What are the key terms when people talk about dinosaurs?",
    "What is the history of the Silk Road?",
    "Describe fractions in two or three sentences.",
)
"""Held out of the bundled head's training (`test_drafter_prompts` sees that it stays so). Written out, since making
all of them parses the standard library, for ten seconds."""


class Difference(NamedTuple):
    """The first place at which a run leaves the plain one. `gap`: how much less likely than its own token the plain run
    held the other's, in log-probability; infinite where it was none of the `LOGPROBS` most likely ones."""

    request: int
    position: int
    gap: float


def differences(plain: Sequence[Served], other: Sequence[Served]) -> list[Difference]:
    """One for each request whose tokens differ. `plain` was asked for `LOGPROBS`."""
    found = []
    for number, (left, right) in enumerate(zip(plain, other, strict=True)):
        place = shared(left.tokens, right.tokens)
        if place < max(len(left.tokens), len(right.tokens)):
            found.append(Difference(number, place, _gap(left, right, place)))
    return found


def shared(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two answers have in common from the start."""
    pairs = zip(left, right, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _gap(left: Served, right: Served, place: int) -> float:
    if place >= min(len(left.tokens), len(right.tokens)):
        return inf  # one of them ended although they had said the same
    rated = dict(left.top[place])
    return rated[left.tokens[place]] - rated.get(right.tokens[place], -inf)


def noise(plain: Sequence[Served], again: Sequence[Served]) -> float:
    """How much the shape of a batch alone moves the gap between the two most likely tokens: its largest change, in
    log-probability, between two plain runs at different batch sizes, while they say the same and have the same two."""
    moved = 0.0
    for left, right in zip(plain, again, strict=True):
        for place in range(shared(left.tokens, right.tokens)):
            before, after = dict(left.top[place][:2]), dict(right.top[place][:2])
            if before.keys() == after.keys():
                first, second = before
                moved = max(moved, abs((before[first] - before[second]) - (after[first] - after[second])))
    return moved
