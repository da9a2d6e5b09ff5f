"""Whether a change lets anybody draft more: such a change is to be confirmed, one that only lowers K is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.policy.resolver import Resolver
from engine.policy.state import PolicyState
from engine.schedule import parse_schedule

_SOMEBODY: Final = "\0"
"""A workload that no state can name: it stands for those of which nothing is said."""


def raises(before: PolicyState, after: PolicyState, max_k: int) -> bool:
    """True when K becomes larger for somebody at some batch size, in an engine whose start-up maximum is `max_k`.

    Of adaptive's own K what it is now is compared; a workload without one may be given as much as schedule and cap
    allow.

    Raises:
        PolicyError: a state that can't be meant.
    """
    old, new = Resolver(before, max_k), Resolver(after, max_k)
    sizes = {*_starts(before), *_starts(after)}
    names = (*{*before.workloads, *after.workloads}, "untagged", _SOMEBODY)
    return any(_k(new, size, name) > _k(old, size, name) for size in sizes for name in names)


def _k(policy: Resolver, running: int, workload: str) -> int:
    return policy.draft_length(running, workload, False, "speculative").k


def _starts(state: PolicyState) -> Iterator[int]:
    """Batch sizes at which K may change: between two of them it is the same."""
    yield 1
    if state.policy.schedule is not None:
        yield from (entry.first for entry in parse_schedule(state.policy.schedule))
