"""One console process behind one browser tab, from its start to its certain end.

textual-serve's own service waits for its process without end, ends none that hangs, and leaves a page standing whose
process broke: what is added here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Final

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from console.web.options import TOKEN_VARIABLE

QUIT_SECONDS: Final = 3.0
"""For a console to leave by itself whose tab was closed."""
LEAVING_SECONDS: Final = 90.0
"""For one that was left from inside, which may be ending station and engine."""
WIDEST: Final = 1000
"""Cells each way that a browser may ask for: beyond, painting would be costly and nobody could read it."""
SEE_THERE: Final = "what it said is in the terminal where `specdeck web` runs."
BLANK: Final = "\x1b[?1049l\x1b[2J\x1b[H"


class ConsoleSession(AppService):
    """`argv`: the command that draws a console when Textual's web driver is asked for."""

    def __init__(self, argv: Sequence[str], websocket: web.WebSocketResponse, downloads: DownloadManager) -> None:
        super().__init__(
            shlex.join(argv),
            write_bytes=self._show,
            write_str=self._tell_page,
            close=self._left,
            download_manager=downloads,
        )
        self._argv = argv
        self._websocket = websocket
        self.ending = False
        """Its tab is gone; its place is free in a moment."""
        self._leaving = False
        self._stopping = False

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(cells(width), cells(height))

    async def start(self, width: int, height: int) -> None:
        await super().start(cells(width), cells(height))

    async def run(self) -> None:
        """Hand on what the console paints until it has ended; then close the page, with a word if it broke."""
        with contextlib.suppress(asyncio.CancelledError):  # where all was said at once, it cancels itself
            await super().run()
        if self._stopping:
            return
        assert self.process.stderr is not None
        sys.stderr.write((await self.process.stderr.read()).decode(errors="replace"))  # said after the last painting
        code = await self.process.wait()
        await self.say("The console was left." if code == 0 else f"The console ended with code {code}: {SEE_THERE}")
        await self._websocket.close()

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    async def stop(self) -> None:
        """End the process, by force if it does not leave in time. It is gone when this returns."""
        if self._process is None:
            return
        self.ending = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quit(), LEAVING_SECONDS if self._leaving else QUIT_SECONDS)
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # with what it has started and can't end any more
        task, self._task = self._task, None
        if task is None:  # it is being ended already
            return
        self._stopping = True
        await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.communicate(), QUIT_SECONDS)  # empties the pipes, else it is not reaped

    async def end(self) -> None:
        """The server goes: end the process, and tell the page."""
        await self.stop()
        await self._websocket.close(code=WSCloseCode.GOING_AWAY)

    async def say(self, text: str) -> None:
        """A line on the page in place of the console."""
        await self._show(f"{BLANK}{text}\r\n".encode())

    async def _quit(self) -> None:
        if not self._leaving and self.process.returncode is None:
            await self.send_meta({"type": "quit"})
        await self.process.wait()

    async def _left(self) -> None:
        """The console says that it is being left; its process may have something to end yet."""
        self._leaving = True
        await self.say("Leaving …")

    async def _show(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # nobody looks any more: what is painted goes nowhere
            await self._websocket.send_bytes(data)

    async def _tell_page(self, text: str) -> None:
        with contextlib.suppress(ConnectionError):
            await self._websocket.send_str(text)

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        environment = self._build_environment(width=width, height=height)
        environment.pop(TOKEN_VARIABLE, None)
        self._process = process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**environment, "PYTHONSAFEPATH": "1"},  # nothing in the operator's directory may shadow ours
            start_new_session=True,  # ctrl+c in the terminal is the server's
        )
        self._stdin = process.stdin
        return process


def cells(wanted: object) -> int:
    """A width or height that a browser asks for, within reason. Raises TypeError, ValueError: it is no number."""
    return max(1, min(WIDEST, int(wanted)))  # type: ignore[call-overload,no-any-return]
