"""`specdeck doctor`: one line and one remedy for each thing that can be wrong with this machine."""

from __future__ import annotations

import click

from console.cli.outcomes import CHECK_FAILED


@click.command(epilog="Example: specdeck doctor --json")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of checks.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Engine, model, OpenMP preload, disk, sockets, versions. Exit code 1 when a check failed.

    Takes up to a minute: the engine's self-test loads it in a process of its own.
    """
    import msgspec

    from engine.doctor import checks

    found = checks()
    if as_json:
        click.echo(msgspec.json.encode([check._asdict() for check in found]).decode())
    else:
        for check in found:
            mark = "ok  " if check.ok else "?   " if check.ok is None else "FAIL"
            click.echo(f"{mark} {check.name}: {check.detail}")
            if check.ok is not True and check.remedy:
                click.echo(f"     → {check.remedy}")
    if any(check.ok is False for check in found):
        ctx.exit(CHECK_FAILED)
