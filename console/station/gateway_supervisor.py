"""Keeps one gateway running: adopts the one that a station before left serving, starts one otherwise, and starts it
again at once when it dies. It outlives the station unless everything is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import zmq
import zmq.asyncio

from console.feed.messages import GatewayView
from console.station.log_tail import last_words
from console.station.options import StationOptions
from engine.process import Backoff, ManagedProcess
from engine.sockets import Sockets, ipc

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.25
_STATS_SECONDS: Final = 1.0
_ANSWER_MS: Final = 1000
_GRACE_SECONDS: Final = 12.0


class GatewayStats(msgspec.Struct, frozen=True):
    requests: int = 0
    errors: int = 0
    unavailable: int = 0
    active: int = 0
    upstream_ok: bool | None = None


class GatewaySupervisor:
    def __init__(
        self,
        options: StationOptions,
        sockets: Sockets,
        context: zmq.asyncio.Context,
        log_path: Path,
        tell: Callable[[str, str], None],
    ) -> None:
        self._options = options
        self._sockets = sockets
        self._context = context
        self._log_path = log_path
        self._tell = tell
        self._state_file = sockets.directory / "gateway.json"
        self._process: ManagedProcess | None = None
        self._stats: GatewayStats | None = None
        self._detail = ""
        self._stats_at = 0.0

    @property
    def process(self) -> ManagedProcess | None:
        return self._process

    def view(self) -> GatewayView:
        """Down: no process. Starting: a process that has not answered yet."""
        stats = self._stats or GatewayStats()
        alive = self._process is not None and self._process.alive()
        state = "serving" if alive and self._stats is not None else "starting" if alive else "down"
        return GatewayView(
            url=self._options.base_url,
            state=state,  # type: ignore[arg-type]
            pid=self._process.pid if self._process is not None and alive else None,
            requests=stats.requests,
            errors=stats.errors,
            unavailable=stats.unavailable,
            detail=self._detail,
        )

    async def run(self) -> None:
        """For ever."""
        backoff = Backoff()
        first = True
        while True:
            adopted = self._adopt() if first else False
            if not adopted:
                self._start()
            self._tell("gateway", f"{'adopted' if adopted else 'started'} on {self._options.base_url}")
            first = False
            await self._watch(backoff)
            self._detail = f"died: {last_words(self._log_path)}"
            self._tell("gateway", self._detail)
            await self._clean_up()
            # Whoever was served until now is waiting at the port: start again at once, slowly only if it keeps dying.
            await asyncio.sleep(max(0.0, backoff.failed(time.monotonic()) - 1.0))

    async def stop(self) -> None:
        await self._clean_up()

    def _argv(self) -> list[str]:
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return [
            sys.executable, "-m", "console.gateway",
            "--listen", f"{host}:{self._options.port}",
            "--upstream", str(self._sockets.engine_http),
            "--control", str(self._sockets.gateway_control),
        ]  # fmt: skip

    def _adopt(self) -> bool:
        found = ManagedProcess.adopt(self._state_file)
        if found is None:
            return False
        if found.state.argv[1:] != self._argv()[1:]:
            log.info("the gateway left behind listens elsewhere; it is replaced")
            found.terminate_group(_GRACE_SECONDS)  # blocks, but nobody is served by this station yet
            return False
        self._process = found
        return True

    def _start(self) -> None:
        """On the loop, milliseconds: cancelled in between, a started gateway would be nobody's."""
        env = dict(os.environ)
        if self._options.api_key:
            env["SPECDECK_API_KEY"] = self._options.api_key
        self._process = ManagedProcess.start(self._argv(), env, self._log_path, self._state_file)

    async def _watch(self, backoff: Backoff) -> None:
        """Until it is gone."""
        looked = 0
        while self._process is not None and self._process.alive():
            if looked % round(_STATS_SECONDS / _LOOK_SECONDS) == 0:
                self._stats = await self._ask_stats() or self._stats
                if self._stats is not None:
                    self._detail = ""
                    backoff.healthy(time.monotonic())
            looked += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _ask_stats(self) -> GatewayStats | None:
        # A fresh socket for each question: a REQ whose answer never came can't be asked again.
        socket = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        try:
            socket.connect(ipc(self._sockets.gateway_control))
            await socket.send(b'{"get": "stats"}')
            if not await socket.poll(_ANSWER_MS):
                return None
            return msgspec.json.decode(await socket.recv(), type=GatewayStats)
        except msgspec.DecodeError:
            return None
        finally:
            socket.close()

    async def _clean_up(self) -> None:
        process, self._process, self._stats = self._process, None, None
        if process is not None:
            await asyncio.to_thread(process.terminate_group, _GRACE_SECONDS)
