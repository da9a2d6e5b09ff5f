"""`specdeck compare`: two windows of a record, or two records, side by side."""

from __future__ import annotations

import click


@click.command(
    epilog="Example: specdeck compare night.jsonl.zst --a 22:10..22:40 --b 22:40..23:10. "
    "Two records: specdeck compare before.duckdb after.duckdb"
)
@click.argument("a", metavar="[A]", default="live")
@click.argument("b", metavar="[B]", required=False)
@click.option("--a", "window_a", default=None, metavar="FROM..TO", help="Only this window of A. Default: all of it.")
@click.option("--b", "window_b", default=None, metavar="FROM..TO", help="Only this window of B, or of A without B.")
@click.option(
    "--by",
    default=None,
    metavar="KEYS",
    help="Hold together by these, comma separated: workload, context, temperature, model_version, engine. "
    "Default: the first three, so that a bucket under two versions is one.",
)
@click.option("--json", "form", flag_value="json", help="The whole comparison as one JSON object.")
@click.option("--table", "form", flag_value="table", default=True, help="For reading (the default).")
def compare(a: str, b: str | None, window_a: str | None, window_b: str | None, by: str | None, form: str) -> None:
    """Two sides, bucket by bucket: two windows of A (the running station unless said), or A and B.

    A and B are `live` (the running station), a .duckdb, or a trace. FROM and TO are Unix seconds, a time of day
    (22:10 or 22:10:30, the last before the record's end), +10m from the record's start or -10m from its end; one of
    them may be left out. Differences are B − A with their 95 % interval; acceptance is held together at the largest
    depth that both sides drafted, too, since α itself tells nothing where K differed. Above the buckets stands what
    differs in configuration.
    """
    from console.cli.compare_sides import taken
    from console.cli.spans import parse_keys
    from store.comparing.compare import compare as hold_together

    found = hold_together(*taken(a, b, window_a, window_b, parse_keys(by)))
    if form == "json":
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
        return
    from console.cli.compare_text import as_table

    click.echo(as_table(found))
