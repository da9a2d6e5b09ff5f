"""`specdeck serve`: the station in the foreground, for a service manager."""

from __future__ import annotations

from typing import Any

import click

from console.cli.options import serving, station_options
from console.cli.outcomes import say


@click.command(epilog="Example: specdeck serve --port 8000 --max-k 4")
@serving
@click.pass_context
def serve(ctx: click.Context, /, **options: Any) -> None:
    """Station, gateway and engine without a console.

    Runs until SIGTERM or SIGINT, which flush the recording and end everything that it started. If it is killed, engine
    and gateway go on serving, and the next station adopts them.
    """
    chosen = station_options(**options)
    say(f"serving on {chosen.base_url}; `specdeck attach` opens the console, `specdeck status` says how far it is")
    from console.station.run import run

    ctx.exit(run(chosen))
