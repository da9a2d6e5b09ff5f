"""What stands in the place of the operating map while there is none. Pure."""

from __future__ import annotations

from typing import Final

from console.app.actions import ACTIONS, unmet
from console.app.drawing.spans import EMPTY, Line, Role, clean, wrap
from console.app.map.words import NONE_HERE
from console.app.picture import Picture
from console.app.rehearsal.words import goes_on
from console.feed.client import FeedError

_WHAT: Final = (
    "For each workload and number of running sequences the map holds the draft length that is best there, and its gain."
)
_HERE: Final = "r rehearses here; `specdeck rehearse quick` does it from a shell."
_ELSEWHERE: Final = "`specdeck rehearse quick` makes one from a shell."
_BEING_MADE: Final = "The rehearsal above makes one at its end."
_OLD_STATION: Final = (
    "This station keeps no operating map: it is of an older specdeck. `specdeck stop`, then `specdeck`, starts one of "
    "this version."
)


def nothing_lines(picture: Picture, error: FeedError | None, width: int) -> list[Line]:
    """Waiting, not there, or not to be had, with what brings it."""
    snapshot = picture.snapshot
    if snapshot is None:
        who = "the trace is open" if picture.replaying else "the station answers"
        return _said(f"The operating map shows here as soon as {who}.", "dim", width)
    if picture.replaying and snapshot.map is None:
        return [*_said(f"{NONE_HERE.capitalize()}.", "bright", width), EMPTY, *_said(_WHAT, "dim", width)]
    if error is not None and error.code == "unknown_method":
        return _said(_OLD_STATION, "text", width)
    if error is not None:
        return _said(f"The operating map can't be read: {error.message}", "warn", width)
    if snapshot.map is not None and picture.link.state == "lost":
        return _said("There is an operating map; the station went away before it was read.", "dim", width)
    if snapshot.map is not None:
        return _said("Reading the operating map …", "dim", width)
    how = _HERE if unmet(ACTIONS["rehearse"], picture) is None else _ELSEWHERE
    if goes_on(snapshot.rehearsal):
        how = _BEING_MADE
    return [
        *_said("No operating map yet", "bright", width), EMPTY, *_said(_WHAT, "dim", width), *_said(how, "text", width)
    ]  # fmt: skip


def _said(text: str, role: Role, width: int) -> list[Line]:
    return [((f"  {part}", role),) for part in wrap(clean(text), min(width, 100) - 4)]
