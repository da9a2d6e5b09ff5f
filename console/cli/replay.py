"""`specdeck replay`: a trace under a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.judging import floor, judge_settings
from console.cli.outcomes import BadInput, say

if TYPE_CHECKING:
    from console.app.replay.moment import Moment


@click.command(epilog="Example: specdeck replay sample_traces/demo.jsonl.zst --speed 10 --at 40%")
@click.argument("path", metavar="TRACE", type=click.Path(exists=True, dir_okay=False))
@click.option("--headless", is_flag=True, help="No console: run to the end and print the report.")
@click.option("--speed", metavar="N|max", help="Times the recorded speed. Default: 1 in the console, max without one.")
@click.option("--at", metavar="WHEN", help="Begin the console here: 14:05, 14:05:30, 90s, 40%.")
@floor("Judge by this floor of the realised speedup. Default: 1.5.")
@click.option("--json", "as_json", is_flag=True, help='Print {"report": …, "alerts": […]}.')
@click.pass_context
def replay(
    ctx: click.Context,
    path: str,
    headless: bool,
    speed: str | None,
    at: str | None,
    speedup_floor: float | None,
    as_json: bool,
) -> None:
    """Show TRACE in the console as if it were now, without a station.

    space plays and holds, < and > change the speed, g goes to a time, n and N to alerts, i asks what another policy
    would have done. With --headless it runs to its end and prints the report.
    """
    if headless:
        if at is not None:
            raise BadInput("--at is for the console: `specdeck report TRACE --at TIME` reports as of a moment")
        _headless(path, None if speed is None else parse_speed(speed), speedup_floor, as_json)
        return
    if as_json:
        raise BadInput("--json is for --headless: the console prints nothing")
    from pathlib import Path

    from console.cli.replay_console import open_replay

    pace = 1.0 if speed is None else playing_speed(speed)
    ctx.exit(open_replay(Path(path), pace, None if at is None else _moment(at), speedup_floor))


def _moment(text: str) -> Moment:
    from console.app.replay.moment import MomentError, read_moment

    try:
        return read_moment(text)
    except MomentError as error:
        raise BadInput(f"--at: {error}") from error


def _headless(path: str, speed: float | None, speedup_floor: float | None, as_json: bool) -> None:
    from pathlib import Path

    from console.cli.sources import opened
    from store.database import StoreError
    from store.replay import of_store, replay_headless
    from store.source import is_database

    settings = judge_settings(speedup_floor)
    try:
        if is_database(Path(path)):
            with opened(path, settings) as store:
                result = of_store(store, path)
        else:
            result = replay_headless(Path(path), speed, settings=settings)
    except StoreError as error:
        raise BadInput(str(error)) from error
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode({"report": result.report, "alerts": result.alerts}).decode())
        return
    from console.cli.figures_text import as_table

    say(f"replayed {path}")
    click.echo(as_table(result.report))


def playing_speed(text: str) -> float | None:
    """Seconds of record a second in the console; None for `max`. Raises BadInput."""
    from console.app.replay.clock import SPEEDS

    speed = parse_speed(text)
    named = [one for one in SPEEDS if one is not None]
    if speed is not None and not named[0] <= speed <= named[-1]:
        raise BadInput(f"--speed {text!r}: the console plays {named[0]:g} to {named[-1]:g} times as fast, or max")
    return speed


def parse_speed(text: str) -> float | None:
    """Times the recorded speed; None for `max`. Raises BadInput."""
    if text == "max":
        return None
    try:
        speed = float(text.lstrip("x×"))
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise BadInput(f"--speed {text!r}: write max, or a number above 0 as in 10")
    return speed
