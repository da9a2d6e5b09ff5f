"""`specdeck report`: the figures of each bucket."""

from __future__ import annotations

import click


@click.command(epilog="Example: specdeck report specdeck.duckdb --by workload --window 5m --json")
@click.argument("source", default="live")
@click.option(
    "--by",
    default=None,
    metavar="KEYS",
    help="Pool over all but these, comma separated: workload, context, temperature, model_version, engine.",
)
@click.option(
    "--window",
    default=None,
    metavar="SPAN",
    help="Only the last 30s, 5m, 2h, 1d … of the recording. Default: all of it.",
)
@click.option(
    "--at", default=None, metavar="TIME", help="As of this moment: Unix seconds or 2026-11-29T18:00. Default: the end."
)
@click.option(
    "--costs",
    is_flag=True,
    help="What speculation cost and saved each workload in seconds of engine time, and who paid for whose drafts.",
)
@click.option("--json", "form", flag_value="json", help="The whole report as one JSON object.")
@click.option("--csv", "form", flag_value="csv", help="One line a bucket.")
@click.option("--table", "form", flag_value="table", default=True, help="For reading (the default).")
def report(source: str, by: str | None, window: str | None, at: str | None, costs: bool, form: str) -> None:
    """Per-bucket figures of SOURCE: `live` (the running station, the default), a .duckdb, or a trace."""
    if costs:
        _costs(source, by, window, at, form)
        return
    from console.cli.figures_text import as_csv, as_json, as_table
    from console.cli.sources import load_report
    from console.cli.spans import parse_keys, parse_span, parse_time

    result = load_report(source, parse_keys(by), parse_span(window), parse_time(at))
    if form == "json":
        click.echo(as_json(result))
    elif form == "csv":
        click.echo(as_csv(result), nl=False)
    else:
        click.echo(as_table(result))


def _costs(source: str, by: str | None, window: str | None, at: str | None, form: str) -> None:
    """The page of the console's key `b`, without a terminal."""
    from console.cli import costs_text
    from console.cli.outcomes import BadInput
    from console.cli.sources import load_balance
    from console.cli.spans import parse_span, parse_time

    if by is not None:
        raise BadInput("--costs is by workload, since those pay for one another: leave --by out")
    if form == "csv":
        raise BadInput("--costs has no --csv: --json has all of it")
    result = load_balance(source, parse_span(window), parse_time(at))
    click.echo(costs_text.as_json(result) if form == "json" else costs_text.as_text(result))
