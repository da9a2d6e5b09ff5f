"""Headless Chromium over its DevTools protocol: opens a page, presses keys, reads what xterm.js shows."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
REQUIRED: Final = "SPECDECK_REQUIRE_CHROMIUM"
"""Set where a browser must be there, as in continuous integration: without one the tests fail, not skip."""
DEADLINE: Final = 60.0

CATCH_TERMINAL: Final = """
Object.defineProperty(Object.prototype, "terminal", {
  configurable: true,
  set(value) {
    Object.defineProperty(this, "terminal", {value, writable: true, configurable: true, enumerable: true});
    if (value && value.buffer) window.theTerminal = value;
  },
});
"""
"""The page keeps its terminal to itself. Its constructor assigns it, and the setter above sees that."""

TEXT: Final = """(() => {
  const buffer = window.theTerminal && window.theTerminal.buffer.active;
  if (!buffer) return "";
  return [...Array(buffer.length).keys()].map(y => buffer.getLine(y).translateToString(true)).join("\\n");
})()"""


def browser() -> str:
    """Path of a Chromium. Skips the test by name where there is none, or fails where one is required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is not None:
        return found
    reason = f"no Chromium here ({', '.join(NAMES)}): on Debian and Ubuntu, apt-get install chromium"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


class Page:
    """One tab, by its DevTools socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.requests: list[str] = []
        """Every address that the page asked for."""
        self.errors: list[str] = []

    async def do(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=DEADLINE)
            self._note(message)
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])

    async def open(self, address: str) -> None:
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.do(f"{domain}.enable")
        await self.do("Page.addScriptToEvaluateOnNewDocument", source=CATCH_TERMINAL)
        await self.do("Page.navigate", url=address)

    async def value(self, expression: str) -> Any:
        answer = await self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            await self.do("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def shows(self, *wanted: str, where: str = TEXT) -> str:
        """Wait until all of `wanted` stands there; the whole text."""
        deadline = time.monotonic() + DEADLINE
        while True:
            text = str(await self.value(where))
            if all(one in text for one in wanted):
                return text
            assert time.monotonic() < deadline, f"never came: {wanted}\n{text}\n{self.errors}"
            await asyncio.sleep(0.1)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(str(params["entry"]["text"]))


@asynccontextmanager
async def new_page(width: int = 1300, height: int = 800) -> AsyncIterator[Page]:
    """A page in a Chromium of its own, which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="sd-chromium-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [
                browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-extensions",
                "--enable-unsafe-swiftshader", f"--window-size={width},{height}", f"--user-data-dir={folder}",
                "--remote-debugging-port=0", "about:blank",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await _debugging_port(Path(folder), process)
            async with aiohttp.ClientSession() as client:
                async with client.get(f"http://127.0.0.1:{port}/json/list") as listed:
                    target = next(one for one in await listed.json() if one["type"] == "page")
                async with client.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Page(socket)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _debugging_port(folder: Path, process: subprocess.Popen[bytes]) -> int:
    file, deadline = folder / "DevToolsActivePort", time.monotonic() + DEADLINE
    while not file.exists() or "\n" not in file.read_text():
        assert process.poll() is None, f"Chromium ended with {process.returncode}"
        assert time.monotonic() < deadline, "Chromium does not say its port"
        await asyncio.sleep(0.05)
    return int(file.read_text().splitlines()[0])
