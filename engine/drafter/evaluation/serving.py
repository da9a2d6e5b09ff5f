"""What both parts of an evaluation need of an engine at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.drafter.evaluation.acceptance import Verification
from engine.drafter.evaluation.arms import Block, Done
from engine.drafter.prompts import Prompt

Serve = Callable[[Block], Done]
"""An engine at work (`engine.drafter.evaluation.arms.Arm.serve`)."""

_PIECE: Final = 32
"""Requests asked of an engine at once, so that there is something to say in between."""


class EvaluationError(Exception):
    """Nothing to measure, or something else than was meant: says what."""


def executed(requests: list[list[Verification]], k: int) -> list[list[Verification]]:
    """As it came; that more was drafted than asked would mean that something else was measured."""
    drafted = max((drafted for steps in requests for drafted, _ in steps), default=0)
    if drafted > k:
        raise EvaluationError(f"the engine drafted {drafted} tokens where {k} were asked: a fault of specdeck's")
    return requests


def pieces(prompts: Sequence[Prompt]) -> Iterator[Sequence[Prompt]]:
    for start in range(0, len(prompts), _PIECE):
        yield prompts[start : start + _PIECE]
