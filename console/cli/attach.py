"""`specdeck attach`: the console on a running station."""

from __future__ import annotations

import click


@click.command(epilog="Example: specdeck attach --read-only")
@click.option("--read-only", is_flag=True, help="Look, but change nothing.")
@click.pass_context
def attach(ctx: click.Context, read_only: bool) -> None:
    """Open the console on the running station. Any number may be attached."""
    from console.cli.console import require_terminal, show
    from console.cli.station import require_station

    require_station()
    require_terminal("`specdeck status` prints what it would show")
    ctx.exit(show("attach", None, read_only=read_only))
