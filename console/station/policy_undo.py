"""The history of the policy, and the way back: undo what one change changed, confirm what waits to be confirmed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from console.feed.protocol import History, HistoryParams, PolicyConfirm, PolicyResult, PolicyUndo
from console.feed.server import FeedError
from console.picturing.action_names import UNDO
from console.picturing.history_entries import entries
from console.picturing.unconfirmed import confirmed
from console.station.policy_answer import check_seen, controlled, result
from console.station.undoing import CannotUndo, PastChanges
from engine.policy import PolicyError
from engine.records import ControlRecord
from store.control_history import controls_since, recent_controls

if TYPE_CHECKING:
    from console.station.control import Control
    from console.station.station import Station

LONGEST_HISTORY: Final = 2000
_LOOK_BACK: Final = 2000
"""Actions among which the newest that can be undone is looked for."""


async def policy_undo(station: Station, params: PolicyUndo, actor: str) -> PolicyResult:
    """Put back all that one change changed, if nothing has changed it since. Raises FeedError where that can't be."""
    control = controlled(station)
    past = PastChanges(await asyncio.to_thread(_since, station, control, params.version))
    check_seen(control.book, params.expect)
    state = control.changes.state
    version = params.version if params.version is not None else past.newest(state)
    if version is None:
        raise FeedError("refused", "there is nothing to undo: no change of an operator still holds as it was made")
    why = f"undo of policy {version}" + (f", {params.why}" if params.why else "")
    try:
        wanted = past.undo(version, state)
        after = await control.changes.make(
            wanted, actor=actor, action=UNDO, why=why, numbers={"undone": version}, unchoose=past.chose(version)
        )
    except (CannotUndo, PolicyError) as error:
        raise FeedError("refused", str(error)) from error
    return result(after)


async def policy_confirm(station: Station, params: PolicyConfirm, actor: str) -> PolicyResult:
    """The unconfirmed policy stays. Raises FeedError where none waits, or another than was seen."""
    control = controlled(station)
    state = control.changes.state
    if state.revert is None:
        raise FeedError("refused", "nothing waits to be confirmed: `specdeck policy history` tells what became of it")
    check_seen(control.book, params.version)
    return result(await control.changes.make(confirmed(state), actor=actor, action="confirm"))


async def policy_history(station: Station, params: HistoryParams, actor: str) -> History:
    """Actions of the operator and of the policy, newest first; a score stands with its decision."""
    if not 0 < params.limit <= LONGEST_HISTORY:
        raise FeedError("bad_params", f"limit: must be 1 to {LONGEST_HISTORY}, not {params.limit}")
    control = station.control
    records = await asyncio.to_thread(_recent, station, control, params.limit, params.workload)
    state, past = control.changes.state if control is not None else None, PastChanges(records)

    def undoable(version: int | None) -> bool:
        return state is not None and past.undoable(version, state)

    return History(entries(records, params.workload, undoable, time.time())[: params.limit])


def _since(station: Station, control: Control, version: int | None) -> list[ControlRecord]:
    """Records since the change to `version`, of None the newest. Waits for the disk: not for the event loop."""
    if version is None:
        return _recent(station, control, _LOOK_BACK, None)
    station.recorder.flush_and_wait()
    with station.recorder.reading() as connection:
        return _with_unwritten(controls_since(connection, version), control)


def _recent(station: Station, control: Control | None, limit: int, workload: str | None) -> list[ControlRecord]:
    station.recorder.flush_and_wait()
    with station.recorder.reading() as connection:
        return _with_unwritten(recent_controls(connection, limit, workload), control)


def _with_unwritten(stored: list[ControlRecord], control: Control | None) -> list[ControlRecord]:
    """With what a full disk kept out of the store: the way back must work then too."""
    last = max((record.policy for record in stored if record.policy is not None), default=0)
    own = control.changes.recent.copy() if control is not None else ()
    return [*(one for one in reversed(own) if one.policy is not None and one.policy > last), *stored]
