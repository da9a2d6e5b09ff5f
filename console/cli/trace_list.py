"""`specdeck trace list`: which traces there are, as the console's Traces screen shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from console.feed.traces import TraceLook


@click.command(name="list", epilog="Example: specdeck trace list --json")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="A JSON array, times as Unix seconds.")
def list_(folder: str | None, as_json: bool) -> None:
    """Traces that specdeck recorded, those in FOLDER (by default this one) and the samples, newest first.

    Reads each of them; large ones take a while, of stores only the tables.
    """
    from pathlib import Path

    import msgspec

    from console.cli.outcomes import say
    from console.looking.folders import listed, samples_folder

    found = listed(str(Path(folder or ".").absolute()), samples_folder())
    looks = [look for file in found.files if (look := _whole(file)) is not None]
    for place in found.places:
        if place.error:
            say(f"{place.path}: {place.error}")
    if as_json:
        click.echo(msgspec.json.encode(looks).decode())
        return
    if not looks:
        say("no trace: `specdeck trace record OUT` makes one")
    for look in looks:
        click.echo(_line(look))


def _whole(file: TraceLook) -> TraceLook | None:
    from console.looking.look import look

    begun = look(file, whole=False)
    return look(begun, whole=True) if begun is not None and begun.state == "begun" else begun


def _line(look: TraceLook) -> str:
    from datetime import datetime

    from console.cli.figures_text import printable

    when = datetime.fromtimestamp(look.modified if look.start is None else look.start).strftime("%Y-%m-%d %H:%M")
    if look.state in ("broken", "held"):
        what = f"{look.state}: {printable(look.reason, 200)}"
    else:
        span = 0.0 if look.start is None or look.end is None else look.end - look.start
        models = f"{printable(look.target.split('@')[0])} · {printable(look.drafter.split('@')[0])}"
        what = f"{span:>7.0f} s {look.rows or 0:>10,} rows {look.bytes / 1e6:>8.2f} MB  {models}"
        what += "  WITH TEXT" if look.text else ""
    return f"{when}  {what}  {printable(look.path, 1000)}"
