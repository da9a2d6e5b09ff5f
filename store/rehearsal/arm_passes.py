"""The passes of a rehearsal by arm and repeat, and what they are held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from store.rehearsal.plan import WITHOUT, fixed_k
from store.rehearsal.reading import PassRead
from store.rehearsal.records import Outcome


class ArmPasses(NamedTuple):
    """Of one arm, by repeat."""

    arm: str
    repeats: dict[int, PassRead]

    def requests(self, phase: int | None, workload: str | None) -> Iterator[tuple[int, list[Outcome]]]:
        """Each repeat with its requests of a phase and workload, None for all."""
        for repeat, one in self.repeats.items():
            yield (
                repeat,
                [
                    request
                    for request in one.outcomes
                    if phase in (None, request.phase) and workload in (None, request.workload)
                ],
            )

    def busy(self, phase: int | None, workload: str | None = None) -> dict[int, float]:
        """Busy tokens/s of each repeat in which it worked there."""
        found = {}
        for repeat, one in self.repeats.items():
            part = one.digest.parts.get((phase, workload))
            if part is not None and part.seconds > 0 and part.emitted > 0:
                found[repeat] = part.emitted / part.seconds
        return found


def by_arm(passes: Sequence[PassRead], order: Sequence[str]) -> dict[str, ArmPasses]:
    """In the order of the plan; arms without a pass are left out."""
    found = {arm: ArmPasses(arm, {}) for arm in order}
    for one in sorted(passes, key=lambda one: one.made.repeat):
        found[one.made.arm].repeats[one.made.repeat] = one
    return {arm: passes for arm, passes in found.items() if passes.repeats}


def baseline_of(arms: Sequence[str]) -> str | None:
    """The best ordinary path: an engine without speculation where that was measured, else the fixed arm that drafts
    least, K = 0 wherever it takes part. None where there is neither."""
    fixed = sorted((arm for arm in arms if fixed_k(arm) is not None), key=lambda arm: fixed_k(arm) or 0)
    return WITHOUT if WITHOUT in arms else fixed[0] if fixed else None


def drafts(arm: str) -> int:
    """Orders fixed arms by how much they draft: none at all before K = 0."""
    k = fixed_k(arm)
    return -1 if k is None else k
