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
@click.option("--json", "form", flag_value="json", help="The whole report as one JSON object.")
@click.option("--csv", "form", flag_value="csv", help="One line a bucket.")
@click.option("--table", "form", flag_value="table", default=True, help="For reading (the default).")
def report(source: str, by: str | None, window: str | None, at: str | None, form: str) -> None:
    """Per-bucket figures of SOURCE: `live` (the running station, the default), a .duckdb, or a trace."""
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
