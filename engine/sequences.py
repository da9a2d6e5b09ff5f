"""The sequences that an engine is serving, as the recorder needs them: handle, tags, and what was proposed for them."""

from __future__ import annotations

from functools import lru_cache

from engine.frames import ArrivedSequence
from engine.records import Lane


class SequenceClass:
    """What the policy can tell apart: sequences of one class get one draft length.

    Compared by identity (`sequence_class` hands out one object per class), since it is looked up for every sequence
    of every step.
    """

    __slots__ = ("disable_speculation", "lane", "workload")

    def __init__(self, workload: str | None, disable_speculation: bool, lane: Lane) -> None:
        self.workload = workload
        self.disable_speculation = disable_speculation
        self.lane = lane


@lru_cache(maxsize=4096)
def sequence_class(workload: str | None, disable_speculation: bool, lane: Lane) -> SequenceClass:
    """The class of a sequence. One that fell out of the cache while in use is only resolved twice."""
    return SequenceClass(workload, disable_speculation, lane)


class LiveSequence:
    """One request between arrival and finish. Mutable: the scheduler's thread updates it every step."""

    __slots__ = ("arrived", "cls", "handle", "prompt_tokens", "proposed", "struck", "tokens")

    def __init__(self, arrived: ArrivedSequence) -> None:
        self.arrived = arrived
        self.handle = arrived.seq
        self.cls = sequence_class(arrived.workload, arrived.disable_speculation, arrived.lane)
        self.prompt_tokens = arrived.prompt_tokens
        self.tokens = arrived.prompt_tokens
        """Prompt and committed output tokens."""
        self.proposed = 0
        """Tokens the drafter proposed for the coming verification (synchronous scheduling only)."""
        self.struck = 0
        """Of those, struck by the grammar before they were scheduled."""
