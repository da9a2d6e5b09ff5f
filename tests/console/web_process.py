"""A real `specdeck web` under test, and what a browser does with it: pages, cookie, and a console by WebSocket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import httpx
import psutil

SCRIPT = Path(sys.executable).with_name("specdeck")
DEADLINE = 30.0


class WebProcess:
    """`address`: what it printed. `said`: its narration, once it has ended."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [str(SCRIPT), "web", "--json", *arguments],
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.address = str(json.loads(line)["url"])
        parts = urlsplit(self.address)
        self.port = parts.port
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.token = parse_qs(parts.query).get("token", [""])[0]
        self.said = ""

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"{self.origin}{path}", headers=headers)

    def cookie(self) -> str:
        """As a browser keeps it that opened the address."""
        return self.get(f"/?token={self.token}").headers["set-cookie"].split(";")[0]

    def consoles(self) -> list[int]:
        """Process ids of the consoles that are open in tabs."""
        return [child.pid for child in psutil.Process(self.process.pid).children() if child.status() != "zombie"]

    def end(self, what: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(what)
        self.said += self.process.communicate(timeout=DEADLINE)[1]
        return self.process.returncode


class Tab:
    """A console as the page in a browser has it. `seen`: everything it has painted."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.seen = b""

    async def shows(self, *wanted: str) -> None:
        """Wait until all of `wanted` was painted since the last call."""
        await self._read_until(lambda: all(text.encode() in self.seen for text in wanted), f"{wanted}")
        self.seen = b""

    async def is_closed(self) -> None:
        await self._read_until(lambda: self.socket.closed, "an end")

    async def press(self, keys: str) -> None:
        await self.socket.send_json(["stdin", keys])

    async def _read_until(self, there: object, what: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while not there():  # type: ignore[operator]
            assert time.monotonic() < deadline, f"never came: {what}\n{self.seen[-3000:]!r}"
            try:
                message = await self.socket.receive(timeout=1.0)
            except TimeoutError:
                continue
            if message.type is aiohttp.WSMsgType.BINARY:
                self.seen += message.data


@asynccontextmanager
async def tab(web: WebProcess, cookie: str = "", size: Sequence[int] = (120, 36), **headers: str) -> AsyncIterator[Tab]:
    """A tab of this server's page. Raises aiohttp.WSServerHandshakeError: it was refused."""
    sent = {"Origin": web.origin, "Cookie": cookie} | headers
    address = f"{web.origin}/ws?width={size[0]}&height={size[1]}"
    async with aiohttp.ClientSession() as client, client.ws_connect(address, headers=sent) as socket:
        yield Tab(socket)


async def gone(pids: Sequence[int]) -> None:
    """Wait until none of the processes is left."""
    deadline = time.monotonic() + DEADLINE
    while left := [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]:
        assert time.monotonic() < deadline, f"still there: {left}"
        await asyncio.sleep(0.05)
