"""`specdeck sql`: questions of one's own."""

from __future__ import annotations

import click

from console.cli.outcomes import BadInput


@click.command(epilog="""Example: specdeck sql "select workload, count(*) from row_facts group by all" """)
@click.argument("arguments", nargs=-1, required=True, metavar="[SOURCE] QUERY")
@click.option("--json", "form", flag_value="json", help="A JSON array of objects.")
@click.option("--csv", "form", flag_value="csv", help="CSV with a header.")
@click.option("--table", "form", flag_value="table", default=True, help="For reading (the default).")
@click.option("--full", is_flag=True, help="Of `live`: all rows and steps that are kept, not only the last hour's.")
def sql(arguments: tuple[str, ...], form: str, full: bool) -> None:
    """Run QUERY on a snapshot of SOURCE (`live` by default), in a child process that can reach no other file.

    The snapshot of `live` holds the rollups of all that was recorded (`bucket_metrics_10s`, `_5m`, `_1h`), and of
    single rows and steps the last hour; a file is read whole. A query may take a minute and a gigabyte of memory, and
    returns at most 10,000 rows.

    `specdeck sql "show all tables"` lists what there is.
    """
    if len(arguments) > 2:
        raise BadInput("sql takes [SOURCE] QUERY: put the query in quotes")
    source, query = arguments if len(arguments) == 2 else ("live", arguments[0])
    from console.cli.sql_run import run

    click.echo(run(source, query, form, full=full), nl=False)
