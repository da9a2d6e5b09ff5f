"""`specdeck policy get`."""

from __future__ import annotations

import click


@click.command(epilog="Example: specdeck policy get --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; times are Unix seconds.")
def get(as_json: bool) -> None:
    """The policy: what was asked for, what each engine resolved it to, and what it executes."""
    import msgspec

    from console.cli.policy_text import as_object, as_text
    from console.cli.station import ask
    from console.feed.messages import Snapshot

    snapshot = ask("snapshot", Snapshot)
    click.echo(msgspec.json.encode(as_object(snapshot)).decode() if as_json else as_text(snapshot))
