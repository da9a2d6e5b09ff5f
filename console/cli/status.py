"""`specdeck status`: what runs."""

from __future__ import annotations

import click

from console.cli.outcomes import UNREACHABLE


@click.command(epilog="Example: specdeck status --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Processes, sockets, store, engines, policy version, age of the last frame.

    Exit code 3 when no station runs.
    """
    from console.cli.station import ask, running_station
    from console.cli.status_text import describe, leftovers_text, status_object
    from console.feed.messages import Snapshot
    from console.feed.protocol import ProcessesResult

    if running_station() is None:
        if as_json:
            click.echo('{"running":false}')
        click.echo(leftovers_text(), err=True)
        ctx.exit(UNREACHABLE)
    snapshot = ask("snapshot", Snapshot)
    processes = ask("processes", ProcessesResult)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(status_object(snapshot, processes)).decode())
    else:
        click.echo(describe(snapshot, processes))
