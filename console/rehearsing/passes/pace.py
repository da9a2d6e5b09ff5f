"""How long a rehearsal takes: its traffic by the plan, what comes around it by what was seen so far. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.rehearsing.passes.order import DuePass, Step, engine_starts
from store.rehearsal.plan import Plan

START_SECONDS: Final = 45.0
"""Of an engine until one was seen: the bundled one on two cores."""

AROUND_SECONDS: Final = 10.0
"""Of a pass beside its traffic, until one was seen: last answers, the trace."""

TEST_SECONDS: Final = 45.0
MEASURE_SECONDS: Final = 15.0


class Pace:
    """What was seen of the overheads."""

    def __init__(self, plan: Plan, *, starts_engines: bool) -> None:
        self._plan = plan
        self._starts_engines = starts_engines
        self._starts: list[float] = []
        self._around: list[float] = []

    def started(self, seconds: float) -> None:
        """An engine came up in so long."""
        self._starts.append(seconds)

    def passed(self, seconds: float) -> None:
        """A pass took so long in all."""
        self._around.append(max(0.0, seconds - self._plan.seconds))

    def seconds(self, steps: Sequence[Step], *, drafting: bool | None = None) -> float:
        """All of `steps`.

        Args:
            drafting: which engine is up, None for none.
        """
        passes = sum(isinstance(step, DuePass) for step in steps)
        around = _mean(self._around, AROUND_SECONDS)
        traffic = passes * (self._plan.seconds + around) + (len(steps) - passes) * TEST_SECONDS
        starts = engine_starts(steps, drafting) if self._starts_engines else 0
        return traffic + starts * _mean(self._starts, START_SECONDS)


def _mean(seen: Sequence[float], otherwise: float) -> float:
    return sum(seen) / len(seen) if seen else otherwise
