"""How many draft tokens each sequence is asked for, and the step that follows from it. Knows no vLLM.

Drafts verified in step n+1 are asked for when step n has been scheduled. `Drafting.ask` fixes a length per sequence
class at that moment, under the policy or under a probe (`engine.probing`); `Drafting.due` says, when they are about to
be verified, what still stands of it: a later policy can only lower it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from engine.policy import DraftLength, Resolver
from engine.probing import Draws, Probing
from engine.records import LIMITS, Limit, Probe
from engine.sequences import SequenceClass

_ORDER = {limit: place for place, limit in enumerate(LIMITS)}

Lengths = dict[SequenceClass, DraftLength]


def _length(resolver: Resolver, running: int, cls: SequenceClass) -> DraftLength:
    return resolver.draft_length(max(running, 1), cls.workload, cls.disable_speculation, cls.lane)


def _longest(lengths: Lengths) -> DraftLength | None:
    return max(lengths.values(), key=lambda length: (length.k, -_ORDER[length.limit]), default=None)


@dataclass(frozen=True, slots=True)
class Asked:
    """Draft lengths asked for at the end of one step. `batch_k` is what the drafter was told."""

    lengths: Lengths
    batch_k: int
    limit: Limit
    running: int
    resolver: Resolver
    """What they were resolved by; another object is another policy, also where the version is the same."""
    filler: bool = False
    """The drafter could not run near its length limit: what it returns are zeros for everybody, not drafts."""
    probe: Probe | None = None
    """The probe under which they were asked for."""
    draws: Draws | None = None
    """Lengths that differ between sequences of one class; `lengths` then holds the longest that they may be."""

    @property
    def version(self) -> int:
        return self.resolver.version


class Drafting:
    """Decides the lengths. `resolver` is swapped by the policy thread; it is read once a step.

    Args:
        seed: of the random lengths that a `deep` probe asks for; None draws one.
    """

    def __init__(self, resolver: Resolver, batch_k: Literal["free", "fixed"], seed: int | None = None) -> None:
        self.resolver = resolver
        self.batch_k = batch_k
        self.probing = Probing()
        self._random = random.Random(seed)
        self.asked = Asked({}, 0 if batch_k == "free" else resolver.max_k, "max", 1, resolver)

    def ask(self, classes: Iterable[SequenceClass], running: int, filler: bool) -> Asked:
        """Fix the draft lengths for the coming verification of `running` scheduled sequences."""
        resolver = self.resolver
        lengths = {cls: _length(resolver, running, cls) for cls in classes}
        longest = _longest(lengths)
        if longest is None:
            longest = resolver.draft_length(max(running, 1), None, False, "speculative")
        probed = self._probed(resolver, lengths, longest, running)
        if probed is not None:
            lengths, longest = probed.lengths, probed.longest
        self.probing.executed(longest.k)
        batch_k = longest.k if self.batch_k == "free" else resolver.max_k
        self.asked = Asked(lengths, batch_k, longest.limit, running, resolver, filler)
        if probed is not None:
            self.asked = replace(self.asked, probe=probed.kind, draws=probed.draws)
        return self.asked

    def due(self) -> Asked:
        """What stands of the last `ask` under the policy of now. A policy in between can only lower it."""
        asked, resolver = self.asked, self.resolver
        if asked.resolver is not resolver:
            lowered = {
                cls: min(length, _length(resolver, asked.running, cls), key=lambda term: term.k)
                for cls, length in asked.lengths.items()
            }
            self.asked = replace(asked, lengths=lowered, resolver=resolver)
        return self.asked

    def length_for(self, asked: Asked, cls: SequenceClass) -> DraftLength:
        """The length of a class, also of one that took no part in the step before (resumed after a preemption)."""
        known = asked.lengths.get(cls)
        if known is None:
            known = _length(self.resolver, asked.running, cls)
            if known.k > asked.batch_k:
                known = DraftLength(asked.batch_k, asked.limit)
        return known

    def _probed(self, resolver: Resolver, plain: Lengths, longest: DraftLength, running: int) -> _Probed | None:
        """What a probe makes of the lengths of this step; None when there is none under way."""
        order = self.probing.candidate()
        if order is None:
            return None
        lengths = {
            cls: resolver.probed_length(order, max(running, 1), cls.workload, cls.disable_speculation, cls.lane)
            for cls in plain
        }
        touched = {cls: length.k for cls, length in lengths.items() if length.limit == "probe"}
        probed = _longest(lengths) or longest
        if not self.probing.begins_or_goes_on(resolver, longest.k, probed.k, bool(touched)):
            return None
        draws = Draws(self._random.getrandbits(64), touched) if order.kind == "deep" else None
        return _Probed(order.kind, lengths, probed, draws)


class _Probed(NamedTuple):
    kind: Probe
    lengths: Lengths
    longest: DraftLength
    draws: Draws | None
