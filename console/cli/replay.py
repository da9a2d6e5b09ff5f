"""`specdeck replay`: a trace under a virtual clock."""

from __future__ import annotations

import click

from console.cli.judging import floor, judge_settings
from console.cli.outcomes import BadInput, say


@click.command(epilog="Example: specdeck replay sample_traces/demo.jsonl.zst --headless --speed max --json")
@click.argument("path", metavar="TRACE", type=click.Path(exists=True, dir_okay=False))
@click.option("--headless", is_flag=True, help="No console: run to the end and print the report.")
@click.option("--speed", default="max", show_default=True, metavar="N|max", help="Times the recorded speed.")
@floor("Judge by this floor of the realised speedup. Default: 1.5.")
@click.option("--json", "as_json", is_flag=True, help='Print {"report": …, "alerts": […]}.')
def replay(path: str, headless: bool, speed: str, speedup_floor: float | None, as_json: bool) -> None:
    """Replay TRACE, without a station.

    Headless only for now: runs to the end and prints the report.
    """
    from pathlib import Path

    from store.replay import replay_headless
    from store.trace import TraceError

    if not headless:
        raise BadInput("the console on a trace is not there yet: add --headless, or see `specdeck report TRACE`")
    try:
        result = replay_headless(Path(path), parse_speed(speed), settings=judge_settings(speedup_floor))
    except TraceError as error:
        raise BadInput(str(error)) from error
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode({"report": result.report, "alerts": result.alerts}).decode())
        return
    from console.cli.figures_text import as_table

    say(f"replayed {path}")
    click.echo(as_table(result.report))


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
