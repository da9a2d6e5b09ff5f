"""`specdeck alerts`: what the judge found, and what the operator says to it."""

from __future__ import annotations

import click

from console.cli.judging import floor, judge_settings
from console.cli.outcomes import CHECK_FAILED, BadInput, say


@click.command(
    epilog="Example: specdeck alerts night.jsonl --json. On the running station: specdeck alerts --snooze 12 --for 2h"
)
@click.argument("source", default="live")
@click.option("--window", default=None, metavar="SPAN", help="Only those of the last 30m, 2h, 1d … Default: all.")
@floor("Judge a trace by this floor of the realised speedup. Default: 1.5.")
@click.option("--acknowledge", type=int, default=None, metavar="ID", help="Say that you have seen alert ID.")
@click.option("--snooze", type=int, default=None, metavar="ID", help="Keep alert ID quiet for a while; it goes on.")
@click.option("--for", "span", default=None, metavar="SPAN", help="How long it is snoozed. Default: 1h.")
@click.option(
    "--accept",
    type=int,
    default=None,
    metavar="ID",
    help="The level that alert ID complains of is right from now on: it ends, later falls are held against it.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def alerts(
    ctx: click.Context,
    source: str,
    window: str | None,
    speedup_floor: float | None,
    acknowledge: int | None,
    snooze: int | None,
    span: str | None,
    accept: int | None,
    as_json: bool,
) -> None:
    """Alerts of SOURCE: `live` (the running station, the default), a .duckdb, or a trace.

    Exit code 1 when one fires at the end of the record.

    With --acknowledge, --snooze or --accept: does that to an alert of the running station, and prints this one alert.
    Their numbers stand in front of them.
    """
    acts = {
        name: number
        for name, number in (("acknowledge", acknowledge), ("snooze", snooze), ("accept", accept))
        if number is not None
    }
    if span is not None and snooze is None:
        raise BadInput("--for says how long an alert is snoozed: name it with --snooze ID")
    if acts:
        if speedup_floor is not None or window is not None:
            raise BadInput(f"--{next(iter(acts))} takes neither --window nor --speedup-floor")
        _act(source, acts, span, as_json)
        return
    import msgspec

    from console.cli.alerts_text import as_text
    from console.cli.sources import load_alerts
    from console.cli.spans import parse_span

    found = load_alerts(source, parse_span(window), judge_settings(speedup_floor))
    click.echo(msgspec.json.encode(found).decode() if as_json else as_text(found.alerts))
    if any(alert.state == "firing" for alert in found.alerts):
        ctx.exit(CHECK_FAILED)


def _act(source: str, acts: dict[str, int], span: str | None, as_json: bool) -> None:
    """Tell the station. Raises BadInput: not one thing to do, no such alert, or nothing that could be told."""
    import msgspec

    from console.cli.alerts_text import as_text
    from console.cli.sources import LIVE
    from console.cli.spans import parse_span
    from console.cli.station import ask
    from console.feed.protocol import LONGEST_SNOOZE_SECONDS, AlertAct
    from store.judge.reports import AlertReport

    if len(acts) > 1:
        raise BadInput(f"one thing at a time: {' and '.join(f'--{name}' for name in acts)} are two")
    ((act, number),) = acts.items()
    if source != LIVE:
        raise BadInput(f"--{act} is told to the running station: {source} is a record, leave it out")
    seconds = parse_span(span or "1h") or 0.0
    if seconds > LONGEST_SNOOZE_SECONDS:
        raise BadInput(f"--for {span}: at most 30d; --accept is for what stays as it is")
    params = AlertAct(id=number, act=act, seconds=seconds)  # type: ignore[arg-type]  # one of the three
    alert = ask("alert_act", AlertReport, params)
    say(_DONE[act].format(number))
    click.echo(msgspec.json.encode(alert).decode() if as_json else as_text([alert]))


_DONE = {
    "acknowledge": "alert {} is acknowledged",
    "snooze": "alert {} is snoozed: it goes on, and nobody is told of it",
    "accept": "the level of alert {} is accepted: later falls are held against it",
}
