"""Two consoles on one station: each is told what the other does, under its name, and has both in its command log."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import zmq.asyncio
from msgspec.structs import replace
from textual.pilot import Pilot

from console.app.application import SpecdeckApp
from console.app.drawing.line_view import LineView
from console.feed.actor import own_actor
from console.feed.client import FeedClient
from console.feed.messages import Snapshot
from console.feed.server import FeedServer
from console.station.acts import RecentActs
from console.station.endpoints import endpoints
from engine.records import ControlRecord
from engine.sockets import Sockets
from store.database import Store
from tests.console import scenes
from tests.console.driving import WIDE, until
from tests.console.policy_desk import Desk

ADA, BOB = "ada@pts/3", "bob@pts/9"


class SharedStation:
    """A feed whose policy is a station's own; its pictures are made up but for that."""

    def __init__(self, folder: Path, desk: Desk) -> None:
        self._desk = desk
        self._acts = RecentActs()
        desk.changes._record = self._record
        self._context = zmq.asyncio.Context()
        self._server = FeedServer(self._context, Sockets(folder), endpoints(desk.station))
        self._tasks = [asyncio.create_task(self._server.serve()), asyncio.create_task(self._publish())]

    def _record(self, record: Any) -> None:
        self._acts.take(record)
        self._desk.record(record)

    def snapshot(self) -> Snapshot:
        state, now = self._desk.state, time.time()
        return replace(
            scenes.live(policy=state.policy), ts=now, policy_version=state.version, cap=state.cap,
            acts=self._acts.views(now),
        )  # fmt: skip

    async def _publish(self) -> None:
        while True:
            await self._server.publish(self.snapshot())
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.close()
        self._context.term()


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    opened = Store.open(tmp_path / "s.duckdb")
    with opened as store, tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        station = SharedStation(Path(name), Desk(tmp_path, store, writes=False))
        yield Path(name)
        await station.close()


def done(actor: str, action: str = "cap", ts: float = 0.0) -> ControlRecord:
    return ControlRecord(ts, actor, action, None, {"cap": None}, {"cap": 2}, 5)


def test_the_acts_of_a_minute_are_shown_but_for_what_acts_all_the_time() -> None:
    acts = RecentActs()
    for number in range(30):
        acts.take(done("adaptive", ts=number))
        acts.take(done("rehearsal", ts=number))
        acts.take(done(BOB, ts=number))
    acts.take(done("station", "revert", ts=40))
    acts.take(done("station", "begin", ts=41))
    shown = acts.views(60.0)
    assert (len(shown), shown[-1].actor, shown[-1].action) == (20, "station", "revert")
    assert (shown[0].actor, shown[0].text) == (BOB, f"{BOB}: cap none → 2")
    assert [act.ts for act in acts.views(95.0)] == [40.0]


@pytest.mark.parametrize(
    ("given", "name"),
    [(None, "ada@pts/3"), ("night shift", "night shift"), ("adaptive", "adaptive@pts/3"), ("a\x1b[2J\nb", "a·[2J·b")],
    ids=["user", "own", "reserved", "hostile"],
)
def test_who_asks_is_known_by_user_and_terminal_or_by_the_name_that_is_given(
    monkeypatch: pytest.MonkeyPatch, given: str | None, name: str
) -> None:
    monkeypatch.setattr("os.ttyname", lambda descriptor: "/dev/pts/3")
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    monkeypatch.delenv("SPECDECK_ACTOR", raising=False)
    if given is not None:
        monkeypatch.setenv("SPECDECK_ACTOR", given)
    assert own_actor() == name


Script = Callable[[SpecdeckApp, Pilot[Any]], Awaitable[None]]


async def console(folder: Path, actor: str, script: Script) -> None:
    async with FeedClient(folder / "feed", folder / "snapshots", actor=actor) as client:
        app = SpecdeckApp(client, actor=actor)
        async with app.run_test(size=WIDE) as pilot:
            await until(pilot, lambda: app.picture.link.state == "connected")
            await script(app, pilot)


def notes(app: SpecdeckApp) -> str:
    return "\n".join(note.message for note in app._notifications)


async def test_each_sees_what_the_other_does_and_may_take_it_back(folder: Path) -> None:
    both_there = asyncio.Barrier(2)

    async def ada(app: SpecdeckApp, pilot: Pilot[Any]) -> None:
        await both_there.wait()
        await pilot.press("minus")
        await until(pilot, lambda: f"{BOB}: undo of policy" in notes(app))
        assert f"{ADA}: " not in notes(app), "what was done here is no news"
        await pilot.press("at")
        log = app.screen.query_one(LineView)
        await until(pilot, lambda: BOB in log.text)
        first, second = [part for part in log.text.split("\n\n") if part.strip()]
        assert f"{ADA} (this console)  ↶ taken back" in first
        assert f"$ specdeck policy undo {app.command_log._asked[0].policy}" in second

    async def bob(app: SpecdeckApp, pilot: Pilot[Any]) -> None:
        await both_there.wait()
        await until(pilot, lambda: f"{ADA}: cap none → 3   (u undoes it)" in notes(app))
        await pilot.press("u")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("y")
        await until(pilot, lambda: "undone: policy" in notes(app))
        await until(pilot, lambda: app.picture.snapshot is not None and app.picture.snapshot.cap is None)

    await asyncio.wait_for(asyncio.gather(console(folder, ADA, ada), console(folder, BOB, bob)), 60)
