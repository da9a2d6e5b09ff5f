"""`specdeck demo`: station, labelled sample traffic and console."""

from __future__ import annotations

from typing import Any, Final

import click

from console.cli.options import serving

SPEEDUP_FLOOR: Final = 1.0
"""The bundled model gains little: the demo warns where speculation is a loss."""


@click.command(epilog="Example: specdeck demo --seconds 120")
@serving
@click.option("--seconds", type=click.FloatRange(min=1), default=None, help="Stretch the traffic to this long in all.")
@click.option("--seed", type=int, default=7, show_default=True, help="Same seed, same requests at the same moments.")
@click.pass_context
def demo(ctx: click.Context, /, seconds: float | None, seed: int, **options: Any) -> None:
    """Four kinds of requests, quiet → busy → quiet, on the bundled model, with the console on them.

    Without a terminal: the same traffic, the live table every few seconds, the report at the end; nothing is left
    running.
    """
    import sys

    from console.cli.demo_run import run_headless, run_with_console

    if options["speedup_floor"] is None:
        options["speedup_floor"] = SPEEDUP_FLOOR
    interactive = sys.stdin.isatty() and sys.stderr.isatty()
    ctx.exit((run_with_console if interactive else run_headless)(options, seconds, seed))
