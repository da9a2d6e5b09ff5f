"""Tells how far a rehearsal is: to whoever looks on here, and over the feed to the consoles of the station."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from console.feed.client import Feed, FeedError
from console.feed.messages import RehearsalView
from console.rehearsing.passes.order import DuePass, Step
from console.rehearsing.passes.pace import Pace
from store.rehearsal.plan import Plan

T = TypeVar("T")

EVERY_SECONDS: Final = 1.0
_PATIENCE: Final = 2.0

State = Literal["starting", "running", "fallback_test", "over", "stopped", "failed"]


class Screen(Protocol):
    """Where a person reads: lines that stay, and one that is written over."""

    def say(self, text: str) -> None: ...

    def now(self, text: str) -> None: ...


class Load(Protocol):
    """What is told of a pass's traffic; `LoadProgress` is one."""

    @property
    def elapsed(self) -> float: ...
    @property
    def sent(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def note(self) -> str: ...


class Telling:
    """`feed`: of the station that is up now, None for none. `moment`: seconds by any clock that only rises."""

    def __init__(
        self, view: RehearsalView, plan: Plan, pace: Pace, screen: Screen, moment: Callable[[], float]
    ) -> None:
        self.feed: Feed | None = None
        self.view = view
        self._plan = plan
        self._pace = pace
        self._screen = screen
        self._moment = moment
        self._left: list[Step] = []
        self._drafting: bool | None = None
        self._begun = moment()

    def say(self, text: str) -> None:
        self._screen.say(text)

    def step(self, left: Sequence[Step], drafting: bool | None) -> None:
        """The first of `left` begins; the engine that is up is `drafting`."""
        self._left, self._drafting, self._begun = list(left), drafting, self._moment()
        step = left[0] if left else None
        rest = f", {span(self.seconds_left() or 0.0)} left"
        if isinstance(step, DuePass):
            self._be("running", pass_number=step.number, arm=step.arm, phase="", sent=0, done=0, errors=0, note="")
            self.say(f"pass {step.number} of {self.view.passes}: arm {step.arm}, repeat {step.repeat}{rest}")
        elif step is not None:
            self._be("fallback_test", arm="", phase="", note="")
            self.say(f"fallback test: K goes down to 0 with rising load, and back{rest}")

    def load(self, seen: Load) -> None:
        """How far the traffic of the present pass is."""
        self._be(
            "running", phase=phase_at(self._plan, seen.elapsed), sent=seen.sent, done=seen.done, errors=seen.errors,
            note=seen.note,
        )  # fmt: skip

    def note(self, text: str) -> None:
        """What is waited for; empty for nothing."""
        self.view = msgspec.structs.replace(self.view, note=text)

    def state(self, state: State, note: str = "") -> None:
        self._left = []
        self._be(state, note=note)

    def seconds_left(self) -> float | None:
        """Of the whole rehearsal; None before the first step."""
        if not self._left:
            return None
        whole = self._pace.seconds(self._left, drafting=self._drafting)
        rest = self._pace.seconds(self._left[1:], drafting=self._drafting)
        return rest + max(0.0, whole - rest - (self._moment() - self._begun))

    async def run(self) -> None:
        """About once a second, for ever."""
        while True:
            await self.tell()
            await asyncio.sleep(EVERY_SECONDS)

    async def tell(self) -> None:
        """Once, now."""
        left = self.seconds_left()
        self.view = msgspec.structs.replace(self.view, seconds_left=left)
        self._screen.now(line(self.view))
        if self.feed is not None:
            with suppress(FeedError):  # a station that is just starting or ending, or knows nothing of rehearsals
                await self.feed.request("rehearsal_progress", self.view, type(None), _PATIENCE)

    def _be(self, state: State, **changes: Any) -> None:
        self.view = msgspec.structs.replace(self.view, state=state, **changes)


async def told(work: Awaitable[T], telling: Telling) -> T:
    """Await `work`, with `telling` going on beside it. Where it breaks off, that is the last word; one that comes to
    its end has said its own."""
    teller = asyncio.create_task(telling.run())
    try:
        return await work
    except asyncio.CancelledError:
        telling.state("stopped", "interrupted")
        raise
    except BaseException as error:
        telling.state("failed", str(error))
        raise
    finally:
        teller.cancel()
        await asyncio.gather(teller, return_exceptions=True)
        await telling.tell()


def phase_at(plan: Plan, elapsed: float) -> str:
    """The phase of a pass after so many seconds; `ending` once only answers are waited for."""
    end = 0.0
    for phase in plan.phases:
        end += phase.seconds
        if elapsed < end:
            return phase.name
    return "ending"


def line(view: RehearsalView) -> str:
    """What goes on, as one line."""
    if view.state == "fallback_test":
        parts = ["fallback test"]
    elif view.state == "running":
        parts = [f"pass {view.pass_number} of {view.passes}", view.arm, view.phase, f"{view.done}/{view.sent} answered"]
        parts += [f"{view.errors} failed"] if view.errors else []
    else:
        parts = [view.state]
    parts += [view.note] if view.note else []
    if view.seconds_left is not None:
        parts.append(f"{span(view.seconds_left)} left")
    return " · ".join(part for part in parts if part)


def span(seconds: float) -> str:
    """`1 h 05 min`, `12 min`, `40 s`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
