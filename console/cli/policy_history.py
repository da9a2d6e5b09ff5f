"""`specdeck policy history`."""

from __future__ import annotations

import click

from console.cli.outcomes import say


@click.command(epilog="Example: specdeck policy history --workload code --limit 20")
@click.option("--limit", type=click.IntRange(1, 2000), default=50, show_default=True, help="The newest so many.")
@click.option("--workload", default=None, help="Only what was done for this workload.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; times are Unix seconds.")
def history(limit: int, workload: str | None, as_json: bool) -> None:
    """What the operator and the policy did, newest first, each with the policy version that it made.

    ↶ marks what `specdeck policy undo VERSION` would put back now.
    """
    import msgspec

    from console.cli.figures_text import printable
    from console.cli.station import ask
    from console.feed.protocol import History, HistoryParams

    found = ask("policy_history", History, HistoryParams(limit=limit, workload=workload))
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    for entry in found.entries:
        version = "" if entry.policy is None else str(entry.policy)
        click.echo(f"{'↶' if entry.undoable else ' '} {version:>6}  {printable(entry.text, 400)}")
    if not found.entries:
        say("nothing was done yet")
