"""textual-serve's server behind the guard: a bounded number of consoles, and none left when it ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp_jinja2
from aiohttp import WSCloseCode, web
from textual_serve.server import Server, to_int

from console.web.access import Access
from console.web.guard import protect
from console.web.session import QUIT_SECONDS, ConsoleSession

log = logging.getLogger(__name__)

PAGES: Final = Path(__file__).with_name("pages")
"""textual-serve's own page fetches a font from the internet; these fetch nothing."""
HEARTBEAT_SECONDS: Final = 15.0
LONGEST_MESSAGE: Final = 1 << 20
"""Bytes: a long paste."""
CLOSING_SECONDS: Final = 2.0
PLACE_LOOKS: Final = 30
FONT_SIZES: Final = range(6, 41)
_MALFORMED: Final = (
    ValueError, TypeError, LookupError, AttributeError, AssertionError, OverflowError, RecursionError,
)  # fmt: skip
"""What textual-serve raises over a message that is none of its page's."""


class WebConsole(Server):
    """Serves the console that `argv` draws. `hindrance`: why none can be opened now, None when one can."""

    def __init__(
        self, argv: Sequence[str], access: Access, *, sessions: int, title: str, hindrance: Callable[[], str | None]
    ) -> None:
        super().__init__("", public_url="", title=title, templates_path=PAGES)
        self._argv = argv
        self._access = access
        self._most = sessions
        self._hindrance = hindrance
        self._sessions: set[ConsoleSession] = set()
        self._ending = False

    async def serve_until(self, end: asyncio.Event, listener: socket.socket) -> None:
        """Serve on `listener` until `end` is set; then no console is left that was opened here."""
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=CLOSING_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            await end.wait()
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.router.add_get("/focus.js", _focus_script)
        protect(app, self._access)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Nothing is printed here: whoever serves says where."""

    async def on_shutdown(self, app: web.Application) -> None:
        self._ending = True
        await asyncio.gather(*(session.end() for session in self._sessions))

    @aiohttp_jinja2.template("app_index.html")
    async def handle_index(self, request: web.Request) -> dict[str, Any]:
        """The page. Its addresses are relative, so that it works under whatever name it was reached."""
        size = to_int(request.query.get("fontsize", ""), 14)
        return {
            "font_size": size if size in FONT_SIZES else 14,
            "app_websocket_url": "/ws",
            "config": {"static": {"url": "/static/"}},
            "application": {"name": self.title},
        }

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One tab: a console of its own for as long as it stays open."""
        websocket = web.WebSocketResponse(
            timeout=CLOSING_SECONDS, heartbeat=HEARTBEAT_SECONDS, max_msg_size=LONGEST_MESSAGE
        )
        session = ConsoleSession(self._argv, websocket, self.download_manager)
        await self._place()
        refusal = self._refusal()
        if refusal is None:
            self._sessions.add(session)
        try:
            await websocket.prepare(request)
            if refusal is not None:
                await session.say(refusal)
                await websocket.close(code=WSCloseCode.TRY_AGAIN_LATER)
            else:
                width, height = (to_int(request.query.get(name, ""), 80) for name in ("width", "height"))
                await session.start(width, height)
                await self._process_messages(websocket, session)
        except ConnectionError:
            pass  # the tab is gone
        except OSError as error:
            await session.say(f"No console can be started here: {error.strerror}.")
            await websocket.close(code=WSCloseCode.TRY_AGAIN_LATER)
        except _MALFORMED:
            log.warning("a browser sent what the page never sends: its console was closed")
            await websocket.close(code=WSCloseCode.POLICY_VIOLATION)
        finally:
            await session.stop()
            self._sessions.discard(session)
        return websocket

    async def _place(self) -> None:
        """Where all places are taken, wait for one that is about to be free: a page that is loaded anew closes its old
        console just before."""
        for _ in range(PLACE_LOOKS):
            if len(self._sessions) < self._most or not any(session.ending for session in self._sessions):
                return
            await asyncio.sleep(QUIT_SECONDS / PLACE_LOOKS)

    def _refusal(self) -> str | None:
        if self._ending:
            return "`specdeck web` is being ended."
        if len(self._sessions) >= self._most:
            return (
                f"As many consoles as may be ({self._most}) are open here: close one of their tabs, or start "
                f"`specdeck web` with --sessions {self._most + 1}."
            )
        return self._hindrance()


async def _focus_script(request: web.Request) -> web.FileResponse:
    return web.FileResponse(PAGES / "focus.js")
