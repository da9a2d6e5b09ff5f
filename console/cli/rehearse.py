"""`specdeck rehearse`: traffic that tries the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.outcomes import CHECK_FAILED, BadInput, Unreachable, say

if TYPE_CHECKING:
    from console.rehearsing.fallback_test import FallbackTest
    from engine.schedule import DraftSchedule


@click.command(epilog="Example: specdeck rehearse --fallback-test --schedule '[[1,2,4],[3,8,1],[9,32,0]]'")
@click.option("--fallback-test", is_flag=True, help="Try that K follows a schedule down to 0 and back.")
@click.option(
    "--schedule", default=None, metavar="SCHEDULE",
    help="JSON, or a .json or .toml file; its last K must be 0. Default: three levels that the engine reaches.",
)  # fmt: skip
@click.option("--api-key", envvar="SPECDECK_API_KEY", default=None, help="Of the public port. Also SPECDECK_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def rehearse(ctx: click.Context, fallback_test: bool, schedule: str | None, api_key: str | None, as_json: bool) -> None:
    """Rehearse on the running station; only --fallback-test for now.

    --fallback-test puts a draft schedule in force, sends streaming requests through the public port, from one at once
    to many and back, and reads from the engine's steps whether each K came at most one step after the running
    sequences crossed. It takes about half a minute, in which the schedule holds for all clients. The policy is put
    back afterwards; if this command is killed, the station puts it back within two minutes.

    Exit code 1 when the engine did not follow, 3 when no station or no engine serves.
    """
    if not fallback_test:
        raise BadInput("only --fallback-test for now")
    chosen = _read(schedule)
    result = _test(chosen, api_key)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(result).decode())
    else:
        click.echo("\n".join(_lines(result)))
    if not result.passed:
        for failure in result.failures:
            say(f"failed: {failure}")
        ctx.exit(CHECK_FAILED)


def _read(schedule: str | None) -> DraftSchedule | None:
    from engine.schedule import ScheduleError
    from engine.schedule_file import read_schedule

    try:
        return None if schedule is None else read_schedule(schedule).schedule
    except ScheduleError as error:
        raise BadInput(f"--schedule: {error}") from error


def _test(schedule: DraftSchedule | None, api_key: str | None) -> FallbackTest:
    from console.cli.station import require_station
    from console.feed.client import FeedClient, FeedError
    from console.rehearsing.fallback_test import fallback_test
    from console.rehearsing.found import NothingToTry
    from console.rehearsing.interrupts import run_to_its_end
    from engine.schedule import ScheduleError
    from engine.sockets import sockets

    require_station()

    async def tested() -> FallbackTest:
        async with FeedClient(sockets().feed, sockets().snapshots, actor="rehearsal") as feed:
            return await fallback_test(feed, schedule, api_key, say)

    try:
        return run_to_its_end(tested(), say)
    except (NothingToTry, FeedError) as error:
        raise Unreachable(str(error)) from error
    except ScheduleError as error:
        raise BadInput(f"schedule: {error}") from error


def _lines(result: FallbackTest) -> list[str]:
    """One line for each change of K, then what it comes to."""
    lines = [
        f"step {one.step}  {one.running} running  K {one.before} → {one.to}  limit {one.limit}  {_when(one.delay)}"
        for one in result.transitions
    ]
    held = ", ".join("–" if level.k is None else str(level.k) for level in result.levels)
    verdict = "passed" if result.passed else "FAILED"
    return [*lines, f"{verdict}: K {held or '–'} executed, {result.steps} steps judged"]


def _when(delay: int | None) -> str:
    """Against the step in which the running sequences crossed into the range of the new K."""
    if delay is None:
        return "where nothing crossed"
    return "at once" if delay == 0 else f"{delay} step{'' if delay == 1 else 's'} late"
