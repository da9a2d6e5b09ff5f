"""Serves the station's own `/metrics` over HTTP, beside the public port: whatever happens to it, serving goes on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from console.feed.messages import Snapshot
from console.station.exposition import CONTENT_TYPE, exposition

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"


class _Server(uvicorn.Server):
    """uvicorn without its signal handling: signals are the station's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class MetricsServer:
    """`/metrics` on this machine only. The picture is the one that consoles get, not taken anew for a scrape."""

    def __init__(self, port: int, picture: Callable[[], Snapshot | None]) -> None:
        self._picture = picture
        app = Starlette(routes=[Route("/metrics", self._metrics)])
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        self._server = _Server(config)
        self._port = port
        self.url = f"http://{HOST}:{port}/metrics"

    async def run(self) -> None:
        """Serve until cancelled. A port that can't be had is told once, and that is all."""
        try:
            listener = socket.create_server((HOST, self._port))
        except OSError as error:
            log.warning("%s is not served: %s; --metrics-port chooses another", self.url, error.strerror)
            await asyncio.Event().wait()
            return
        with listener:
            await self._server.serve([listener])

    async def _metrics(self, _: Request) -> Response:
        picture = self._picture()
        if picture is None:
            return PlainTextResponse("no picture yet: try again in a moment\n", status_code=503)
        return Response(exposition(picture), media_type=CONTENT_TYPE)
