"""A rehearsal from the command line, from the choice of its engine to the map that is kept."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Final, NamedTuple

from console.cli.outcomes import BadInput, Unreachable, say
from console.cli.rehearse_choice import Asked, Ground, Subject, ground, remember, subject
from console.cli.rehearse_host import OwnStation
from console.cli.rehearse_report import Reported, report
from console.cli.rehearse_screen import StderrScreen
from console.feed.client import FeedClient, FeedError
from console.feed.messages import RehearsalView
from console.feed.protocol import MapAnswer, MapPut
from console.rehearsing.interrupts import run_to_its_end
from console.rehearsing.passes.folder import FolderError, RehearsalFolder
from console.rehearsing.passes.host import ACTOR, Host, HostFailed
from console.rehearsing.passes.lock import AnotherGoesOn, alone
from console.rehearsing.passes.order import passes, to_do
from console.rehearsing.passes.pace import Pace
from console.rehearsing.passes.running_station import RunningStation
from console.rehearsing.passes.telling import Telling, span, told
from console.rehearsing.passes.whole import Beginning, Refused, Stopped, Whole
from console.rehearsing.plans.reading import PlanError
from engine.places import runtime_dir
from engine.sockets import sockets
from store.operating_map.records import OperatingMap

_KEEP_SECONDS: Final = 30.0


class Ended(NamedTuple):
    """A rehearsal that came to its end. `own`: no station ran that could keep its map."""

    folder: RehearsalFolder
    reported: Reported
    own: bool


def run(asked: Asked) -> Ended:
    """Make a rehearsal, or what is left of one.

    Raises:
        BadInput: a plan or options that can't be meant.
        Unreachable: no engine to rehearse on, or not to the end: then it says how to go on.
        KeyboardInterrupt: it was interrupted; it says how to go on.
    """
    on = subject(asked)
    try:
        with alone(runtime_dir(), on.folder.id):
            return _run(asked, on)
    except AnotherGoesOn as error:
        raise Unreachable(str(error)) from error


def _run(asked: Asked, on: Subject) -> Ended:
    where = ground(asked, on)
    remember(on, where)
    screen = StderrScreen()
    first = "the policy is given back first" if where.own is None else "what was started is ended first"
    try:
        return run_to_its_end(_whole(asked, on, where, screen), screen.say, first)
    except (Refused, PlanError, FolderError) as error:
        raise BadInput(str(error)) from error
    except (Stopped, HostFailed) as error:
        raise Unreachable(f"{error}{_resume(on.folder)}") from error
    except KeyboardInterrupt:
        say(f"stopped{_resume(on.folder)}")
        raise
    finally:
        screen.end()
        on.folder.remove_unbegun()


def _resume(folder: RehearsalFolder) -> str:
    return f"; go on with: specdeck rehearse --resume {folder.id}" if folder.begun() else ""


async def _whole(asked: Asked, on: Subject, where: Ground, screen: StderrScreen) -> Ended:
    pace = Pace(where.plan, starts_engines=where.own is not None)
    view = RehearsalView(
        id=on.folder.id, plan=where.plan.name, state="starting", passes=len(passes(where.plan)),
        folder=str(on.folder.path), pid=os.getpid(),
    )  # fmt: skip
    telling = Telling(view, where.plan, pace, screen, time.monotonic)
    left = to_do(where.plan, on.folder.done() if on.folder.begun() else ())
    screen.say(f"rehearsal {on.folder.id}: about {span(pace.seconds(left))} ({on.folder.path})")
    async with FeedClient(sockets().feed, sockets().snapshots, actor=ACTOR) as feed:
        host: Host = (
            RunningStation(feed, asked.api_key, where.plan)
            if where.own is None
            else OwnStation(where.own, on.folder.path / "stores", screen.say)
        )
        whole = Whole(host, on.folder, Beginning(where.plan, where.notes), telling, pace)
        try:
            return await told(_made(on.folder, whole, telling, feed if where.own is None else None), telling)
        finally:
            telling.feed = None
            try:
                screen.end()
            finally:
                await host.leave()


async def _made(folder: RehearsalFolder, whole: Whole, telling: Telling, feed: FeedClient | None) -> Ended:
    """Run it, make the report, and have the station of `feed` keep the map."""
    await whole.run()
    telling.say("all passes are made: working out the results")
    reported = await asyncio.to_thread(report, folder.path)
    if feed is not None:
        await _keep(feed, reported.map, telling)
    telling.state("over", f"operating map of {len(reported.map.cells)} cells")
    return Ended(folder, reported, feed is None)


async def _keep(feed: FeedClient, map: OperatingMap, telling: Telling) -> None:
    try:
        await feed.request("map_put", MapPut(map=map), MapAnswer, _KEEP_SECONDS)
    except FeedError as error:
        telling.say(f"the station did not take the map, so its screens do not show it: {error.message}")
