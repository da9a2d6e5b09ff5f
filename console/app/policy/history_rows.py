"""The history of the policy, a sentence a line, with what `u` would undo. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.app.drawing.spans import Line, clean
from console.feed.protocol import HistoryEntry

NO_HISTORY: Final = "Nothing was changed yet. m changes the mode, + and - the cap, f falls back, l moves a workload."

NO_HISTORY_HERE: Final = "Nothing was changed up to this moment. c goes to the next control action, if there is one."


def history_row(entry: HistoryEntry) -> Line:
    mark = "u" if entry.undoable else " "
    return (
        (f"{mark} ", "key"),
        (clean(entry.text or entry.action), "text" if entry.undoable else "dim"),
    )


def history_detail(entry: HistoryEntry) -> str:
    """The whole sentence, and whether it can be taken back."""
    way = "u takes it back" if entry.undoable else "it can't be undone now"
    return f"{entry.text or entry.action}   ({way})"


def entry_key(entry: HistoryEntry) -> str:
    """Tells one line from another over the time that it is shown."""
    return f"{entry.ts!r} {entry.policy} {entry.action} {entry.workload}"


def of_one_change(entries: Sequence[HistoryEntry], one: HistoryEntry) -> list[HistoryEntry]:
    """All that the history holds of the change that `one` belongs to, `one` first."""
    others = [entry for entry in entries if entry.policy == one.policy and entry != one]
    return [one, *others] if one.policy is not None else [one]


def newest_undoable(entries: Sequence[HistoryEntry]) -> HistoryEntry | None:
    return next((entry for entry in entries if entry.undoable and entry.policy is not None), None)
