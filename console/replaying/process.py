"""One replay from its first picture to its end: feed, pictures, and what makes it stop."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Final

import zmq.asyncio

from console.feed.messages import Snapshot
from console.feed.server import FeedServer
from console.looking.looker import Looker
from console.parent import when_parent_is_gone
from console.replaying.endpoints import endpoints
from console.replaying.opened import Opened, opened
from console.replaying.player import PICTURE_SECONDS, NothingYet, Player
from engine.sockets import Sockets
from store.database import StoreError
from store.judge.settings import JudgeSettings

FAREWELL_SECONDS: Final = 0.1
"""A console drops the answer to `stop` that it has not read when the connection ends."""
LOOK_SECONDS: Final = 0.05
"""Until there is a first picture."""


async def run(path: Path, sockets: Sockets, settings: JudgeSettings | None) -> None:
    """Replay `path` until it is told to stop.

    Raises:
        StoreError: there is nothing in it that could be shown.
    """
    process = _Process(sockets)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, process.stop)
    when_parent_is_gone(lambda: _tell(loop, process.stop))
    with opened(path, settings, lambda: _tell(loop, process.more)) as found:
        await process.play(found)


class _Process:
    def __init__(self, sockets: Sockets) -> None:
        self._sockets = sockets
        self._stopping = asyncio.Event()
        self._moved = asyncio.Event()
        self._player: Player | None = None

    def stop(self) -> None:
        self._stopping.set()
        self._moved.set()

    def more(self) -> None:
        if self._player is not None:
            self._player.more()
        self._moved.set()

    async def play(self, found: Opened) -> None:
        self._player = player = Player(found)
        first = await self._first_picture(found, player)
        if first is None:
            return
        context = zmq.asyncio.Context()
        looker = Looker()
        feed = FeedServer(context, self._sockets, endpoints(player, self._sockets, self._moved.set, self.stop, looker))
        serving = asyncio.create_task(feed.serve())
        try:
            await self._publish(feed, player, first)
            await feed.drain()
            await asyncio.sleep(FAREWELL_SECONDS)
        finally:
            await looker.close()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            feed.close()
            context.term()

    async def _first_picture(self, found: Opened, player: Player) -> Snapshot | None:
        """None: stopped before there was one."""
        while not self._stopping.is_set():
            complete = found.complete
            try:
                return await asyncio.to_thread(player.take)
            except NothingYet:
                if complete:
                    raise StoreError(found.error or f"{found.path}: nothing is recorded in it") from None
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _publish(self, feed: FeedServer, player: Player, snapshot: Snapshot) -> None:
        """A picture every `PICTURE_SECONDS`, and one at once when the clock was moved."""
        while not self._stopping.is_set():
            due = time.monotonic() + PICTURE_SECONDS
            self._moved.clear()
            await feed.publish(snapshot)
            try:
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._moved.wait()
            except TimeoutError:
                pass
            if not self._stopping.is_set():
                snapshot = await asyncio.to_thread(player.take)


def _tell(loop: asyncio.AbstractEventLoop, what: object) -> None:
    """From another thread; a loop that has ended has nothing to be told."""
    try:
        loop.call_soon_threadsafe(what)  # type: ignore[arg-type]
    except RuntimeError:
        return
