"""Keeps one gateway running: adopts the one that a station before left serving, starts one otherwise, and starts it
again at once when it dies. It outlives the station unless everything is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import zmq.asyncio

from console.feed.messages import GatewayView
from console.feed.texts import Texts, TextsAsked
from console.station.gateway_control import GatewayControl, GatewayStats, LaneTable
from console.station.log_tail import last_words
from console.station.options import StationOptions
from engine.process import Backoff, ManagedProcess
from engine.records import Lane
from engine.sockets import Sockets

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.25
_STATS_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 12.0


class GatewaySupervisor:
    def __init__(
        self,
        options: StationOptions,
        sockets: Sockets,
        context: zmq.asyncio.Context,
        log_path: Path,
        tell: Callable[[str, str], None],
        *,
        vanilla_upstream: Path | None = None,
    ) -> None:
        """`vanilla_upstream`: the unix socket of a vLLM without speculation, where there is one."""
        self._options = options
        self._sockets = sockets
        self._control = GatewayControl(context, sockets.gateway_control)
        self._log_path = log_path
        self._tell = tell
        self._vanilla_upstream = vanilla_upstream
        self._table: LaneTable | None = None
        self._table_sent: LaneTable | None = None
        self._state_file = sockets.directory / "gateway.json"
        self._process: ManagedProcess | None = None
        self._stats: GatewayStats | None = None
        self._detail = ""
        self._began = False
        """There was one already."""
        self._stats_at = 0.0

    @property
    def process(self) -> ManagedProcess | None:
        return self._process

    @property
    def stats(self) -> GatewayStats | None:
        """The counts as last heard, None before the first answer of this gateway."""
        return self._stats

    def work_by(self, version: int, lanes: Mapping[str, Lane]) -> None:
        """The lane table from now on; sent within half a second, and again to every gateway that takes over.

        Until it is called the gateway keeps the table that a station before sent it.
        """
        self._table = LaneTable(version, dict(lanes))

    async def texts(self, asked: TextsAsked) -> Texts | None:
        """Prompts and answers, asked for a recording; None where the gateway doesn't answer."""
        return await self._control.texts(asked)

    def view(self) -> GatewayView:
        """Down: it died. Starting: a process that has not answered yet, or none so far."""
        stats = self._stats or GatewayStats()
        alive = self._process is not None and self._process.alive()
        begun = alive or not self._began
        state = "serving" if alive and self._stats is not None else "starting" if begun else "down"
        return GatewayView(
            url=self._options.base_url,
            state=state,  # type: ignore[arg-type]
            pid=self._process.pid if self._process is not None and alive else None,
            requests=stats.requests,
            errors=stats.errors,
            detail=self._detail,
            unavailable=stats.unavailable,
            refused=stats.refused,
            hints_seen=stats.hints_seen,
            hints_rejected=stats.hints_rejected,
            unsupported=stats.unsupported,
            vanilla_engine=self._vanilla_upstream is not None,
            vanilla_ok=stats.vanilla_ok if state == "serving" else None,
            vanilla_requests=stats.vanilla_by_lane + stats.vanilla_by_hint + stats.vanilla_by_parameters,
            vanilla_spilled=stats.vanilla_spilled,
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
            *(["--vanilla-upstream", str(self._vanilla_upstream)] if self._vanilla_upstream is not None else []),
            *(["--no-speculation"] if "none" in (self._options.drafter.strip(), self._options.method) else []),
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
        self._began = True
        env = dict(os.environ)
        if self._options.api_key:
            env["SPECDECK_API_KEY"] = self._options.api_key
        self._process = ManagedProcess.start(self._argv(), env, self._log_path, self._state_file)

    async def _watch(self, backoff: Backoff) -> None:
        """Until it is gone."""
        looked = 0
        self._table_sent = None
        while self._process is not None and self._process.alive():
            if looked % round(_STATS_SECONDS / _LOOK_SECONDS) == 0:
                self._stats = await self._control.stats() or self._stats
                if self._stats is not None:
                    self._detail = ""
                    backoff.healthy(time.monotonic())
            if self._table is not None and self._table != self._table_sent:
                await self._send_table(self._table)
            looked += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _send_table(self, table: LaneTable) -> None:
        answer = await self._control.work_by(table)
        if answer is None:
            return  # it is starting, or on its way out: the next look tries again
        self._table_sent = table
        if answer.error is not None:
            self._tell("gateway", f"refused the lanes of policy {table.version} and keeps those before: {answer.error}")

    async def _clean_up(self) -> None:
        process, self._process, self._stats = self._process, None, None
        if process is not None:
            await asyncio.to_thread(process.terminate_group, _GRACE_SECONDS)
