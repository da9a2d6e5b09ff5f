"""`specdeck rehearse --fallback-test` alone, on the running station."""

from __future__ import annotations

from console.cli.outcomes import BadInput, Unreachable, say
from console.rehearsing.fallback_test import FallbackTest, fallback_test
from engine.schedule import DraftSchedule, ScheduleError


def read(schedule: str | None) -> DraftSchedule | None:
    """Raises BadInput."""
    from engine.schedule_file import read_schedule

    try:
        return None if schedule is None else read_schedule(schedule).schedule
    except ScheduleError as error:
        raise BadInput(f"--schedule: {error}") from error


def tested(schedule: DraftSchedule | None, api_key: str | None) -> FallbackTest:
    """Raises Unreachable, BadInput."""
    from console.cli.station import require_station
    from console.feed.client import FeedClient, FeedError
    from console.rehearsing.found import NothingToTry
    from console.rehearsing.interrupts import run_to_its_end
    from console.rehearsing.passes.host import ACTOR
    from console.rehearsing.passes.lock import AnotherGoesOn, alone
    from engine.places import runtime_dir
    from engine.sockets import sockets

    require_station()

    async def run() -> FallbackTest:
        async with FeedClient(sockets().feed, sockets().snapshots, actor=ACTOR) as feed:
            return await fallback_test(feed, schedule, api_key, say)

    try:
        with alone(runtime_dir(), "of the fallback alone"):
            return run_to_its_end(run(), say)
    except AnotherGoesOn as error:
        raise Unreachable(str(error)) from error
    except (NothingToTry, FeedError) as error:
        raise Unreachable(str(error)) from error
    except ScheduleError as error:
        raise BadInput(f"schedule: {error}") from error


def lines(result: FallbackTest) -> list[str]:
    """One line for each change of K, then acceptance and what it comes to."""
    changes = [
        f"step {one.step}  {one.running} running  K {one.before} → {one.to}  limit {one.limit}  {_when(one.delay)}"
        for one in result.transitions
    ]
    held = ", ".join("–" if level.k is None else str(level.k) for level in result.levels)
    verdict = "passed" if result.passed else "FAILED"
    return [*changes, *_acceptance(result), f"{verdict}: K {held or '–'} executed, {result.steps} steps judged"]


def _acceptance(result: FallbackTest) -> list[str]:
    if not result.prompts:
        return []
    before, after = (
        "–" if rate is None else f"{rate:.2f}" for rate in (result.acceptance_before, result.acceptance_after)
    )
    return [
        f"acceptance of the same {result.prompts} prompts at the same K: {before} before, {after} after "
        f"(n {result.draft_steps_before} and {result.draft_steps_after} draft steps)"
    ]


def _when(delay: int | None) -> str:
    """Against the step in which the running sequences crossed into the range of the new K."""
    if delay is None:
        return "where nothing crossed"
    return "at once" if delay == 0 else f"{delay} step{'' if delay == 1 else 's'} late"
