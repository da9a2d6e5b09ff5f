"""The passes of a rehearsal by arm and repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
