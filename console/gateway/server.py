"""The running gateway: uvicorn around the proxy, the control socket beside it, and an orderly end on SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from console.gateway import control
from console.gateway.answer import BodyCutShort
from console.gateway.listen import bound_address
from console.gateway.proxy import Proxy
from console.gateway.upstream import listening

_AFTER_CUT_SECONDS = 2
"""How long clients get to read the last event of a stream that was cut."""


class _Server(uvicorn.Server):
    """uvicorn without its signal handling: ours exits 0 after a SIGTERM, and cuts streams with a word of why."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(proxy: Proxy, listener: socket.socket, control_path: Path, *, grace_seconds: float) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is in flight, at most `grace_seconds` of it."""
    config = uvicorn.Config(
        proxy,
        lifespan="off",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(grace_seconds) + _AFTER_CUT_SECONDS,
    )
    logging.getLogger("uvicorn.error").addFilter(_without_cut_bodies)
    server = _Server(config)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(server, proxy, listener, control_path, grace_seconds))


async def _serve(
    server: _Server, proxy: Proxy, listener: socket.socket, control_path: Path, grace_seconds: float
) -> None:
    loop = asyncio.get_running_loop()
    url = f"http://{bound_address(listener)}"

    def stats() -> dict[str, Any]:
        vanilla = proxy.engines.vanilla
        return {
            "pid": os.getpid(),
            "url": url,
            **msgspec.structs.asdict(proxy.counts),
            "upstream_ok": listening(proxy.engines.main),
            "vanilla_engine": vanilla is not None,
            "vanilla_ok": listening(vanilla) if vanilla is not None else None,
            "table_version": proxy.lanes.table.version,
        }

    def stop() -> None:
        server.should_exit = True
        loop.call_later(grace_seconds, proxy.cut_all)

    controller = control.Control(stats, proxy.lanes, proxy.texts)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    answering = asyncio.create_task(control.serve(controller, control_path))
    try:
        await server.serve(sockets=[listener])
    finally:
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering


def _without_cut_bodies(record: logging.LogRecord) -> bool:
    """uvicorn logs a traceback for the exception that closes half a body; the counts have it already."""
    return not (record.exc_info and isinstance(record.exc_info[1], BodyCutShort))
