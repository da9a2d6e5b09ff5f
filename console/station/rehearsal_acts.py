"""Rehearsals as consoles ask for them, and as one tells of itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from console.feed.messages import CalibrationView, EngineState, RehearsalView, UnconfirmedView
from console.feed.protocol import RehearsalStart, RehearsalStop
from console.feed.server import FeedError
from console.picturing.action_names import REHEARSAL
from console.station.policy_answer import controlled
from console.station.rehearsal_process import Refused
from engine.records import ControlRecord, EngineRecord

if TYPE_CHECKING:
    from console.station.station import Station


def hindrance(
    engine: EngineState | None,
    record: EngineRecord | None,
    calibration: CalibrationView | None,
    unconfirmed: UnconfirmedView | None,
) -> str | None:
    """Why no rehearsal may begin now; None: one may. `engine`, `record`: of the one that is ours, None without one."""
    if engine is None:
        return "this station runs no engine of its own: there is nothing behind its public port to rehearse on"
    if engine != "serving" or record is None:
        return f"the engine is {engine}: wait until it serves"
    if record.max_k == 0:
        return "the engine has no drafter: there is no speculation to rehearse; start the station with a --drafter"
    if calibration is not None and calibration.state == "running":
        return f"engine {calibration.engine} is being calibrated: try again in a minute"
    if unconfirmed is not None:
        return "a change of the policy waits to be confirmed: `specdeck policy confirm` or `specdeck policy undo` first"
    return None


async def rehearsal_start(station: Station, params: RehearsalStart, actor: str) -> RehearsalView:
    """Raises FeedError where none may begin."""
    try:
        view = controlled(station).rehearsals.start(params.plan)
    except Refused as error:
        raise FeedError("refused", str(error)) from error
    station.recorder.put(ControlRecord(ts=time.time(), actor=actor, action=REHEARSAL, after={"plan": params.plan}))
    station.tell("control", f"{actor}: rehearsal of plan {params.plan} started (pid {view.pid})")
    return view


async def rehearsal_progress(station: Station, params: RehearsalView, actor: str) -> None:
    """Raises FeedError where another one goes on: then this one must not begin."""
    try:
        controlled(station).rehearsals.progress(params)
    except Refused as error:
        raise FeedError("refused", str(error)) from error


async def rehearsal_stop(station: Station, params: RehearsalStop, actor: str) -> RehearsalView:
    """Raises FeedError where none goes on that could be interrupted."""
    try:
        view = controlled(station).rehearsals.interrupt(params.id)
    except Refused as error:
        raise FeedError("refused", str(error)) from error
    station.recorder.put(
        ControlRecord(ts=time.time(), actor=actor, action="rehearsal_stop", after={"rehearsal": view.id or view.plan})
    )
    return view
