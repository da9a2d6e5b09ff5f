"""`specdeck trace info`."""

from __future__ import annotations

import click

from console.cli.outcomes import BadInput


@click.command(epilog="Example: specdeck trace info run.jsonl.zst --json")
@click.argument("path", metavar="TRACE", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object, times as Unix seconds.")
def info(path: str, as_json: bool) -> None:
    """What a trace holds: engines, span of time, counts of records, warnings."""
    from pathlib import Path

    import msgspec
    from store.trace import TraceError, trace_info

    try:
        found = trace_info(Path(path))
    except TraceError as error:
        raise BadInput(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    for name, value in msgspec.to_builtins(found).items():
        click.echo(f"{name:<12} {value}")
