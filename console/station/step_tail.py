"""The last steps of each engine, in memory: what was executed a moment ago, without asking the store."""

from __future__ import annotations

from collections import deque
from typing import Final

from console.feed.protocol import Steps, StepsParams, StepView
from console.station.engines import KnownEngine
from engine.frames import Announcement, Frame

STEPS_KEPT: Final = 20_000
"""A quarter of an hour of the bundled model; a minute and more of a fast one."""


class StepTail:
    """Fed with what engines say, as it comes."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[str, deque[StepView]]] = {}

    def take(self, known: KnownEngine, message: Frame | Announcement) -> None:
        if not isinstance(message, Frame) or message.step is None:
            return
        held = self._steps.get(message.engine)
        if held is None or held[0] != message.boot:
            held = self._steps[message.engine] = (message.boot, deque(maxlen=STEPS_KEPT))
        step = message.step
        held[1].append(
            StepView(step.step, step.ts, step.running, step.k_draft, step.limit_draft, step.policy, step.probe)
        )

    def steps(self, engine: str, params: StepsParams) -> Steps:
        """Steps of one engine after a number, at most `limit` of the newest."""
        boot, held = self._steps.get(engine, ("", deque()))
        found = [step for step in held if step.step > params.after]
        return Steps(engine, boot, found[max(0, len(found) - params.limit) :])
