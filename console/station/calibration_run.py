"""One try at calibrating an engine: visits one batch size after the other until all is measured or something comes in
between. What was measured until then counts for the next try, since the steps are in the store all the same."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from console.station.calibration_plan import VISIT_STEPS, Arm, Measured, Pause, Visit, next_visit
from console.station.calibration_steps import Cell, StepCounts
from console.station.calibration_traffic import PROMPT_TOKENS

_TICK: Final = 0.05
_SPARE_TOKENS: Final = 16
"""Of a sequence, for the steps in which others of the batch are still at their prompt."""


class Requests(Protocol):
    async def generate(self, batch: int, drafting: bool, tokens: int) -> None: ...


class Clock(NamedTuple):
    """Replaced in tests."""

    now: Callable[[], float]
    """Unix seconds."""
    sleep: Callable[[float], Awaitable[None]]


class Interrupted(Exception):
    """Something else has precedence: says what."""


class OutOfTime(Exception):
    """The deadline came in the middle of a visit."""


class CalibrationRun:
    """`measured`: what earlier tries brought, by batch size; kept up."""

    def __init__(
        self,
        requests: Requests,
        counts: StepCounts,
        sizes: Sequence[int],
        measured: dict[int, Measured],
        clock: Clock,
        halt: Callable[[], str | None],
    ) -> None:
        """`halt` says why to stop; None to go on."""
        self._requests = requests
        self._counts = counts
        self.sizes = sizes
        self._measured = measured
        self._clock = clock
        self._halt = halt
        self.batch = sizes[0]
        """The one that is measured now."""
        self.began = clock.now()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self._clock.now() - self.began

    async def run(self, seconds: float, max_k: int, max_tokens: int) -> None:
        """Until all that fits into `seconds` is measured.

        Args:
            max_k: the longest draft of the engine.
            max_tokens: that a sequence of it may have, prompt included.

        Raises:
            Interrupted: `halt` said so.
            CalibrationRefused: the engine did not generate.
        """
        deadline = self.began + seconds
        longest = max(1, max_tokens - PROMPT_TOKENS)
        with contextlib.suppress(OutOfTime):
            while (step := next_visit(self.sizes, self._measured, self._clock.now(), deadline)) is not None:
                if isinstance(step, Pause):
                    await self._pause(step.until, deadline)
                else:
                    await self._visit(step, deadline, max_k, longest)

    async def _visit(self, visit: Visit, deadline: float, max_k: int, longest: int) -> None:
        self.batch = visit.batch
        seconds: dict[Arm, float] = {}
        try:
            for arm in visit.arms:
                began = self._clock.now()
                await self._block(Cell(visit.batch, arm), deadline, max_k, longest)
                seconds[arm] = self._clock.now() - began
        finally:
            self._note(visit.batch, seconds if len(seconds) == len(visit.arms) else None)

    def _note(self, batch: int, seconds: dict[Arm, float] | None) -> None:
        """`seconds`: of a complete visit. One that broke off before any was complete leaves nothing to plan by."""
        before = self._measured.get(batch)
        if before is None and seconds is None:
            return
        known = before or Measured()
        self._measured[batch] = Measured(
            vanilla=self._counts.halves(Cell(batch, "vanilla")),
            drafting=self._counts.steps(Cell(batch, "drafting")),
            visits=known.visits + (seconds is not None),
            seconds=known.seconds if seconds is None else seconds,
        )

    async def _block(self, cell: Cell, deadline: float, max_k: int, longest: int) -> None:
        """The steps of one arm of a visit, by as many sequences side by side."""
        steps, drafting = VISIT_STEPS[cell.arm], cell.arm == "drafting"
        tokens = min(longest, (steps + _SPARE_TOKENS) * (max_k + 1 if drafting else 1))
        wanted = self._counts.steps(cell) + steps
        self._counts.measure(cell)
        generating = asyncio.ensure_future(self._requests.generate(cell.batch, drafting, tokens))
        try:
            await self._wait(lambda: generating.done() or self._counts.steps(cell) >= wanted, deadline)
            if generating.done():
                generating.result()
        finally:
            self._counts.measure(None)
            generating.cancel()
            await asyncio.gather(generating, return_exceptions=True)

    async def _pause(self, until: float, deadline: float) -> None:
        await self._wait(lambda: self._clock.now() >= until, deadline)

    async def _wait(self, over: Callable[[], bool], deadline: float) -> None:
        while not over():
            why = self._halt()
            if why is not None:
                raise Interrupted(why)
            if self._clock.now() >= deadline:
                raise OutOfTime
            await self._clock.sleep(_TICK)
