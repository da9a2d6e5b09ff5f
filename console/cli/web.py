"""`specdeck web`: the console in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

DEFAULT_PORT: Final = 8010
"""Apart from the gateway's 8000 and its metrics."""


@click.command(
    epilog="Example: specdeck web. Example, from another machine: ssh -t -L 8010:127.0.0.1:8010 HOST specdeck web"
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    envvar="SPECDECK_WEB_HOST",
    help="Address to listen on. Off loopback others can reach it, and without TLS read along.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    envvar="SPECDECK_WEB_PORT",
    help="0: any free one.",
)
@click.option("--write", is_flag=True, help="The browser may change things too. Without it, it only looks.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    envvar="SPECDECK_WEB_TOKEN_FILE",
    help="Take the token from this file, one line. Else from SPECDECK_WEB_TOKEN; else one is made and printed.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Ask for none: read-only and on loopback alone. Other users of this machine can then look.",
)
@click.option(
    "--allow-host",
    "allow_host",
    multiple=True,
    metavar="NAME",
    envvar="SPECDECK_WEB_ALLOW_HOST",
    help="A further name that browsers reach it by; addresses and this machine's own name need none. Repeatable.",
)
@click.option(
    "--sessions",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    envvar="SPECDECK_WEB_SESSIONS",
    help="Tabs that may be open at once; each is a console process.",
)
@click.option(
    "--replay",
    "trace",
    metavar="TRACE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show a trace in place of the station; each tab plays it for itself.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as a JSON object.")
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input does.")
def web(**options: Any) -> None:
    """Serve the console on the running station to browsers, read-only unless --write is given.

    Prints the address with its token; the browser then keeps a cookie, so that the address can be forgotten. Each tab
    is a console process, which ends with its tab. ctrl+c, SIGTERM and SIGHUP end them all.
    """
    from console.cli.settings.defaults import in_force
    from console.cli.web_serve import serve_browsers

    in_force()  # a settings file that can't be meant is told here, not in each tab
    serve_browsers(**options)
