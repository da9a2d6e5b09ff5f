"""`specdeck trace end`: ends the recording that the station makes, from wherever it was begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from console.cli.outcomes import CheckFailed, say

if TYPE_CHECKING:
    from console.feed.messages import RecordingView

_LOOK_SECONDS: Final = 0.2


@click.command(epilog="Example: specdeck trace end")
@click.option("--into", "out", metavar="OUT", help="Write it here, as where it was to go is full or gone.")
def end(out: str | None) -> None:
    """End the recording that goes on (`trace record --detach`, or `r` in the console) and write its file.

    One that can't be written goes on, and nothing is lost. Prints the path that was written.
    """
    from pathlib import Path

    from console.cli.station import ask
    from console.feed.messages import RecordingView
    from console.feed.traces import RecordingEnd

    path = None if out is None else str(Path(out).absolute())
    begun = ask("recording_end", RecordingView, RecordingEnd(path=path))
    say(f"writing {begun.rows:,} rows")
    written = _followed(begun)
    if written.note:
        say(written.note)
    click.echo(written.path)


def _followed(begun: RecordingView) -> RecordingView:
    """Until it is written. Raises CheckFailed: it could not be."""
    import time

    from console.cli.station import ask
    from console.feed.messages import Snapshot

    while True:
        view = ask("snapshot", Snapshot).recording
        if view is None or view.id != begun.id:  # another one has begun since
            return begun
        if view.state == "written":
            return view
        if view.state == "on" and view.note:
            raise CheckFailed(f"it goes on, since it could not be written: {view.note}; --into OUT writes it elsewhere")
        time.sleep(_LOOK_SECONDS)
