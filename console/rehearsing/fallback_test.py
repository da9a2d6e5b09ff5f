"""The fallback test: a schedule is put in force, traffic goes up and down through its levels, and the steps must show
that the engine executed it, each change at most one step after the running sequences crossed; and acceptance afterwards
must be what it was before."""

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
from console.rehearsing.loan import Loan, LoanRefused
from console.rehearsing.obstacles import obstacles
from console.rehearsing.recovery import Accepted, accepted, not_recovered
from console.rehearsing.streams import Streams, answer_tokens
from console.rehearsing.terms import Terms
from console.rehearsing.trying import RowsMissing, Trying
from engine.records import PolicyMode
from engine.schedule import DraftSchedule
from store.buckets import model_version

TAG: Final = "rehearsal"
HOLD_STEPS: Final = 60
"""Steps over which each level is held."""

TRAFFIC_SECONDS: Final = 100.0
"""All levels together."""

_LOOK_SECONDS: Final = 0.1
_STEPS_SECONDS: Final = 30.0
_WHY: Final = "the fallback test"


class FallbackTest(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck rehearse --fallback-test --json` prints. `steps`: judged; `others`: steps that tell of other
    clients' requests or of probes alone; `levels`: in the order in which they were held. `acceptance_before`,
    `acceptance_after`: rates of the same `prompts` prompts at the same K before the levels and after them, over so many
    draft steps; None where nothing was drafted or it did not come so far."""

    passed: bool
    schedule: list[tuple[int, int, int]]
    levels: list[LevelSeen] = []
    transitions: list[Transition] = []
    failures: list[str]
    steps: int = 0
    others: int = 0
    model_version: str
    acceptance_before: float | None = None
    acceptance_after: float | None = None
    prompts: int = 0
    draft_steps_before: int = 0
    draft_steps_after: int = 0
    broken_off: str | None = None
    """Why it did not come to its end: station or engine were lost, which says nothing of the fallback."""


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
        return _result(found, chosen, Verdict([], [], in_the_way, 0, 0), [])
    port = PublicPort(found.url, api_key)
    try:
        verdict, rates, lost = await _tested(feed, found, chosen, port, plan, tell)
        return msgspec.structs.replace(_result(found, chosen, verdict, rates), broken_off=lost)
    finally:
        await port.close()


async def _tested(
    feed: Feed, found: Found, schedule: DraftSchedule, port: PublicPort, plan: list[Level], tell: Callable[[str], None]
) -> tuple[Verdict, list[Accepted], str | None]:
    """What was found, and why it broke off where it did."""
    terms = Terms(policy=PolicyMode(mode="schedule", schedule=list(schedule)))
    loan = Loan(feed, terms, _WHY, tell, kept=True)
    trying = Trying(feed, port, found.engine.engine, found.engine.max_model_len, tell)
    trouble: list[str] = []
    steps: list[StepView] = []
    held: list[Held] = []
    rates: list[Accepted] = []
    lost: str | None = None
    try:
        async with loan:
            watch = _Watch(feed, found, loan.version, steps)
            rates.append(await _accepted(port, trying, plan[0], watch, tell))
            async with Streams(port, TAG, answer_tokens(found.engine.max_model_len)) as streams:
                until = time.monotonic() + TRAFFIC_SECONDS
                for level in up_and_down(plan):
                    tell(f"concurrent requests: {level.concurrent}; K {level.k} is due at {level.stretch} running")
                    held.append(await _hold(level, streams, watch, until))
            rates.append(await _accepted(port, trying, plan[0], watch, tell))
    except NotHeld as error:
        trouble.append(str(error))
    except (LoanRefused, NotServed, RowsMissing) as error:
        lost = str(error)
    except FeedError as error:
        lost = f"the station stopped answering: {error.message}"
    if len(rates) == 2 and (fall := not_recovered(*rates)) is not None:
        trouble.append(fall)
    verdict = check(steps, schedule, held, loan.version)
    trouble += [lost] if lost is not None else []
    return msgspec.structs.replace(verdict, failures=[*verdict.failures, *trouble, *loan.trouble]), rates, lost


async def _accepted(
    port: PublicPort, trying: Trying, level: Level, watch: _Watch, tell: Callable[[str], None]
) -> Accepted:
    """Acceptance at the first level, where one request alone runs."""
    tell(f"acceptance of the same prompts at K {level.k}")
    found = await accepted(port, trying, level.k, TAG)
    await watch.look()
    return found


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
        new = await self._feed.request("steps", params, Steps, _STEPS_SECONDS)
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


def _result(found: Found, schedule: DraftSchedule, verdict: Verdict, rates: list[Accepted]) -> FallbackTest:
    before, after = [*rates, *[Accepted([], None, 0)] * 2][:2]
    return FallbackTest(
        passed=not verdict.failures,
        schedule=list(schedule),
        levels=verdict.levels,
        transitions=verdict.transitions,
        failures=verdict.failures,
        steps=verdict.steps,
        others=verdict.others,
        model_version=model_version(found.engine),  # type: ignore[arg-type]  # the same four fields
        acceptance_before=before.rate,
        acceptance_after=after.rate,
        prompts=len(before.by_prompt),
        draft_steps_before=before.draft_steps,
        draft_steps_after=after.draft_steps,
    )
