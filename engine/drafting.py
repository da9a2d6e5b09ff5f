"""How many draft tokens each sequence is asked for, and the step that follows from it. Knows no vLLM.

Drafts verified in step n+1 are asked for when step n has been scheduled. `Drafting.ask` fixes a length per sequence
class at that moment; `Drafting.due` says, when they are about to be verified, what still stands of it: a later policy
can only lower it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from engine.policy import DraftLength, Resolver
from engine.records import LIMITS, Limit
from engine.sequences import SequenceClass

_ORDER = {limit: place for place, limit in enumerate(LIMITS)}


def _length(resolver: Resolver, running: int, cls: SequenceClass) -> DraftLength:
    return resolver.draft_length(max(running, 1), cls.workload, cls.disable_speculation, cls.lane)


@dataclass(frozen=True, slots=True)
class Asked:
    """Draft lengths asked for at the end of one step. `batch_k` is what the drafter was told."""

    lengths: dict[SequenceClass, DraftLength]
    batch_k: int
    limit: Limit
    running: int
    version: int
    filler: bool = False
    """The drafter could not run near its length limit: what it returns are zeros for everybody, not drafts."""


class Drafting:
    """Decides the lengths. `resolver` is swapped by the policy thread; it is read once a step."""

    def __init__(self, resolver: Resolver, batch_k: Literal["free", "fixed"]) -> None:
        self.resolver = resolver
        self.batch_k = batch_k
        self.asked = Asked({}, 0 if batch_k == "free" else resolver.max_k, "max", 1, resolver.version)

    def ask(self, classes: Iterable[SequenceClass], running: int, filler: bool) -> Asked:
        """Fix the draft lengths for the coming verification of `running` scheduled sequences."""
        resolver = self.resolver
        lengths = {cls: _length(resolver, running, cls) for cls in classes}
        longest = max(lengths.values(), key=lambda length: (length.k, -_ORDER[length.limit]), default=None)
        if longest is None:
            longest = resolver.draft_length(max(running, 1), None, False, "speculative")
        batch_k = longest.k if self.batch_k == "free" else resolver.max_k
        self.asked = Asked(lengths, batch_k, longest.limit, running, resolver.version, filler)
        return self.asked

    def due(self) -> Asked:
        """What stands of the last `ask` under the policy of now. A version in between can only lower it."""
        asked, resolver = self.asked, self.resolver
        if asked.version == resolver.version:
            return asked
        lowered = {
            cls: min(length, _length(resolver, asked.running, cls), key=lambda term: term.k)
            for cls, length in asked.lengths.items()
        }
        self.asked = Asked(lowered, asked.batch_k, asked.limit, asked.running, resolver.version, asked.filler)
        return self.asked

    def length_for(self, asked: Asked, cls: SequenceClass) -> DraftLength:
        """The length of a class, also of one that took no part in the step before (resumed after a preemption)."""
        known = asked.lengths.get(cls)
        if known is None:
            known = _length(self.resolver, asked.running, cls)
            if known.k > asked.batch_k:
                known = DraftLength(asked.batch_k, asked.limit)
        return known
