"""The fallback test: a schedule is put in force, traffic goes up and down through its levels, and the steps must show
that the engine executed it, each change at most one step after the running sequences crossed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from console.feed.client import Feed, FeedError
from console.feed.protocol import Steps, StepsParams, StepView
from console.rehearsing.checking import OTHERS, Held, LevelSeen, Transition, Verdict, check
from console.rehearsing.client import NotServed, PublicPort
from console.rehearsing.found import Found, find
from console.rehearsing.levels import Level, default_schedule, levels, up_and_down
from console.rehearsing.loan import CONFIRM_SECONDS, Loan, LoanRefused
from console.rehearsing.obstacles import obstacles
from console.rehearsing.streams import Streams, answer_tokens
from console.rehearsing.terms import Terms
from engine.records import PolicyMode
from engine.schedule import DraftSchedule
from store.buckets import model_version

TAG: Final = "rehearsal"
HOLD_STEPS: Final = 60
"""Steps over which each level is held."""

TRAFFIC_SECONDS: Final = CONFIRM_SECONDS - 20.0
"""All levels together: the schedule must be given back before the station takes it back."""

_LOOK_SECONDS: Final = 0.1
_WHY: Final = "the fallback test"


class FallbackTest(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck rehearse --fallback-test --json` prints. `steps`: judged; `others`: steps that tell of other
    clients' requests or of probes alone; `levels`: in the order in which they were held."""

    passed: bool
    schedule: list[tuple[int, int, int]]
    levels: list[LevelSeen] = []
    transitions: list[Transition] = []
    failures: list[str]
    steps: int = 0
    others: int = 0
    model_version: str


async def fallback_test(
    feed: Feed, schedule: DraftSchedule | None, api_key: str | None, tell: Callable[[str], None]
) -> FallbackTest:
    """Run it on the station behind `feed`.

    Args:
        schedule: None for the one that fits the engine.
        tell: hears what goes on.

    Raises:
        NothingToTry: no engine serves there.
        ScheduleError: the engine can't be brought to its levels.
        FeedError: the station does not answer.
    """
    found = await find(feed)
    max_k, most = found.engine.max_k or 0, found.engine.max_num_seqs or 1
    chosen = schedule if schedule is not None else default_schedule(max_k, most)
    plan = levels(chosen, max_k, most)
    in_the_way = obstacles(found.snapshot, found.engine, max(level.k for level in plan), TAG)
    if in_the_way:
        return _result(found, chosen, Verdict([], [], in_the_way, 0, 0))
    port = PublicPort(found.url, api_key)
    try:
        return _result(found, chosen, await _tested(feed, found, chosen, port, plan, tell))
    finally:
        await port.close()


async def _tested(
    feed: Feed, found: Found, schedule: DraftSchedule, port: PublicPort, plan: list[Level], tell: Callable[[str], None]
) -> Verdict:
    loan = Loan(feed, Terms(policy=PolicyMode(mode="schedule", schedule=list(schedule))), _WHY, tell)
    trouble: list[str] = []
    steps: list[StepView] = []
    held: list[Held] = []
    try:
        async with loan, Streams(port, TAG, answer_tokens(found.engine.max_model_len)) as streams:
            watch = _Watch(feed, found, loan.version, steps)
            until = time.monotonic() + TRAFFIC_SECONDS
            for level in up_and_down(plan):
                tell(f"concurrent requests: {level.concurrent}; K {level.k} is due at {level.stretch} running")
                held.append(await _hold(level, streams, watch, until))
    except (LoanRefused, NotServed, NotHeld) as error:
        trouble.append(str(error))
    except FeedError as error:
        trouble.append(f"the station stopped answering: {error.message}")
    verdict = check(steps, schedule, held, loan.version)
    return msgspec.structs.replace(verdict, failures=[*verdict.failures, *trouble, *loan.trouble])


class NotHeld(Exception):
    """The traffic did not bring the engine to a level; says what was seen."""


class _Watch:
    """The engine's steps since the test began, under the schedule that it is about."""

    def __init__(self, feed: Feed, found: Found, policy: int, steps: list[StepView]) -> None:
        self._feed = feed
        self._engine, self._boot, self._after = found.engine.engine, found.boot, found.step
        self._policy = policy
        self._steps = steps

    async def look(self) -> list[StepView]:
        """What is new. Raises NotHeld when the engine is another process by now."""
        params = StepsParams(engine=self._engine, after=self._after)
        new = await self._feed.request("steps", params, Steps)
        if new.boot != self._boot and self._boot:
            raise NotHeld(f"engine {self._engine} was started anew in the middle of the test")
        self._boot = new.boot
        if new.steps:
            self._after = new.steps[-1].step
            self._steps += new.steps
        return [step for step in new.steps if step.policy >= self._policy]


async def _hold(level: Level, streams: Streams, watch: _Watch, until: float) -> Held:
    """Bring the engine to `level` and keep it there. Raises NotHeld, NotServed."""
    await streams.be(level.concurrent)
    first, last, there = -1, -1, 0
    running, others = {0}, set[str]()
    while there < HOLD_STEPS:
        if time.monotonic() > until:
            raise NotHeld(_too_slow(level, there, running, others))
        await asyncio.sleep(_LOOK_SECONDS)
        streams.check()
        for step in await watch.look():
            running.add(step.running)
            if step.limit in OTHERS:
                others.add(step.limit)
            elif level.holds(step.running):
                there += 1
                last = step.step
                first = step.step if first < 0 else first
    return Held(level, first, last)


def _too_slow(level: Level, there: int, running: set[int], others: set[str]) -> str:
    if running == {0}:
        return f"the engine made no step under the schedule within {TRAFFIC_SECONDS:.0f} s: see `specdeck status`"
    told = f"; other terms that set K: {', '.join(sorted(others))}" if others else ""
    return (
        f"{level.stretch} running was held for {there} of {HOLD_STEPS} steps when {TRAFFIC_SECONDS:.0f} s were over; "
        f"up to {max(running)} ran, {level.concurrent} of them its own: too much other traffic, or too slow an engine"
        f"{told}"
    )


def _result(found: Found, schedule: DraftSchedule, verdict: Verdict) -> FallbackTest:
    return FallbackTest(
        passed=not verdict.failures,
        schedule=list(schedule),
        levels=verdict.levels,
        transitions=verdict.transitions,
        failures=verdict.failures,
        steps=verdict.steps,
        others=verdict.others,
        model_version=model_version(found.engine),  # type: ignore[arg-type]  # the same four fields
    )
