"""`specdeck serve`: the station in the foreground, for a service manager."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from console.cli.options import observing_options, scraping, serving, station_options
from console.cli.outcomes import say

if TYPE_CHECKING:
    from console.station.options import StationOptions


@click.command(
    epilog="Example: specdeck serve --port 8000 --max-k 4. Example: specdeck serve --scrape http://gpu7:8000/metrics"
)
@serving
@scraping
@click.pass_context
def serve(ctx: click.Context, /, scrape: str | None, **options: Any) -> None:
    """Station, gateway and engine without a console.

    Runs until SIGTERM or SIGINT, which flush the recording and end everything that it started. If it is killed, engine
    and gateway go on serving, and the next station adopts them.

    With --scrape it starts neither and only observes a vLLM that somebody else runs, by its counters: acceptance pooled
    over all requests, no executed K, no buckets, no speedup.
    """
    if scrape is not None:
        chosen = _observing(ctx, scrape, options)
    else:
        chosen = station_options(**options)
        say(f"serving on {chosen.base_url}; `specdeck attach` opens the console, `specdeck status` says how far it is")
    from console.station.run import run

    ctx.exit(run(chosen))


def _observing(ctx: click.Context, address: str, options: dict[str, Any]) -> StationOptions:
    chosen = observing_options(ctx, address, store=options["store"], metrics_port=options["metrics_port"])
    from console.station.scrape_address import read_address

    shown = read_address(address).shown
    # The station's state file tells how it was started: a password in the address must not get there.
    sys.orig_argv[:] = [argument.replace(address, shown) for argument in sys.orig_argv]
    say(f"observing {shown}; `specdeck attach` opens the console, `specdeck report` prints the figures")
    return chosen
