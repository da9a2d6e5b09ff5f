"""`specdeck alerts`: what the judge found."""

from __future__ import annotations

import click

from console.cli.outcomes import CHECK_FAILED


@click.command(epilog="Example: specdeck alerts night.jsonl --json")
@click.argument("source", default="live")
@click.option("--window", default=None, metavar="SPAN", help="Only those of the last 30m, 2h, 1d … Default: all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def alerts(ctx: click.Context, source: str, window: str | None, as_json: bool) -> None:
    """Alerts of SOURCE: `live` (the running station, the default), a .duckdb, or a trace.

    Exit code 1 when one fires at the end of the record.
    """
    import msgspec

    from console.cli.alerts_text import as_text
    from console.cli.sources import load_alerts
    from console.cli.spans import parse_span

    found = load_alerts(source, parse_span(window))
    click.echo(msgspec.json.encode(found).decode() if as_json else as_text(found.alerts))
    if any(alert.state == "firing" for alert in found.alerts):
        ctx.exit(CHECK_FAILED)
