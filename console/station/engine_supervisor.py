"""Keeps an engine of ours serving: resolves the model, starts or adopts vLLM, waits for its health, and starts it again
after growing pauses when any of its processes dies. Nothing of a dead engine is left when the next one starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from console.feed.messages import EngineState, Phase
from console.station.log_tail import size_of, text_since
from console.station.phases import Phases
from engine.health import MEMBER_NAME, failure_reason, healthy_async, startup_phases
from engine.launch import EngineSpec, SpecError, clear_remains, command, http_socket, installed_device
from engine.models import ModelError, resolve
from engine.process import Backoff, ManagedProcess, ProcessError
from engine.sockets import Sockets

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.25
_HEALTH_SECONDS: Final = 3.0
_HEALTH_TIMEOUT: Final = 10.0
"""Patient: on a busy CPU the API server shares its cores with the model."""
_HEALTH_FAILURES: Final = 6
"""Failed looks in a row that end an engine whose processes all live: it no longer answers."""
_GRACE_SECONDS: Final = 10.0


class Broken(Exception):
    """The engine is not serving any more, or did not come to serve: why."""


class Unstartable(Broken):
    """It cannot be started as it was asked for, and trying again would change nothing."""


class EngineSupervisor:
    def __init__(
        self,
        spec: EngineSpec,
        sockets: Sockets,
        log_path: Path,
        tell: Callable[[str, str], None],
        *,
        stand_in: list[str] | None = None,
        wait_for: Callable[[], str | None] | None = None,
    ) -> None:
        """`stand_in`: a command to start in place of vLLM. `wait_for`: what its first start is still to wait for."""
        self.engine = spec.engine
        self.state: EngineState = "starting"
        self.detail = ""
        self.last_broken: str | None = None
        """Why it last went down."""
        self.restarts = 0
        self.started: float | None = None
        self.log_path = log_path
        self.spec = spec
        self.device = spec.device or _installed()
        """What it runs on, as far as that is known before it says so."""
        self._command = stand_in
        self._wait_for = wait_for
        self._sockets = sockets
        self._http = http_socket(spec.engine, sockets.directory)
        self._state_file = sockets.directory / f"engine-{self.engine}.json"
        self._process: ManagedProcess | None = None
        self._tell = tell
        self._phases = Phases()
        self._backoff = Backoff()
        self._restart_asked = asyncio.Event()
        self._names: dict[int, str] = {}
        self._log_from: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.alive() else None

    def phases(self) -> list[Phase]:
        return self._phases.view()

    def adopt(self) -> bool:
        """Take over the engine that an earlier station left serving, if there is one."""
        self._process = ManagedProcess.adopt(self._state_file)
        if self._process is None:
            return False
        self.started = self._process.state.started
        self._phases.reset(["adopt", "serving"])
        self._phases.finish("adopt")
        self._phases.begin("serving")
        return True

    def was_left_behind(self) -> bool:
        """Whether an engine ran here that nobody stopped, and that runs no more."""
        return self._process is None and ManagedProcess.recall(self._state_file) is not None

    async def run(self) -> None:
        """For ever: bring up, watch, clean up, pause."""
        await self._wait_for_turn()
        while True:
            try:
                await self._bring_up()
                await self._watch()
            except Broken as broken:
                await self._recover(broken)

    def restart(self) -> None:
        """Asked for by the operator: end the present process and start anew, without a pause."""
        self._restart_asked.set()

    async def stop(self) -> None:
        self.state, self.detail = "stopped", ""
        await self._clean_up()

    async def _wait_for_turn(self) -> None:
        """Before the first start, if there is nothing to adopt."""
        if self._wait_for is None or self._process is not None:
            return
        while (reason := self._wait_for()) is not None:
            self.detail = f"waits {reason}"
            await asyncio.sleep(_LOOK_SECONDS)
        self.detail = ""
        self._restart_asked.clear()

    async def _bring_up(self) -> None:
        if self._process is None:
            await self._start()
        while not await self._healthy():
            self._note_phases()
            self._check_alive()
            self._check_members()
            await asyncio.sleep(_LOOK_SECONDS)
        self._note_phases()
        self._phases.finish("serving")
        self._remember_members()
        self.state, self.detail = "serving", ""
        self._tell("engine", f"{self.engine} is serving")

    async def _healthy(self) -> bool:
        return await healthy_async(self._http, _HEALTH_TIMEOUT)

    async def _start(self) -> None:
        self._phases.reset(["model", *(name for name, _ in startup_phases(""))])
        self._phases.begin("model")
        argv, env = await self._launch_command()
        self._phases.finish("model")
        self._phases.begin("process")
        self._log_from = size_of(self.log_path)
        try:
            await asyncio.to_thread(self._clear_remains)
            # On the loop, milliseconds: cancelled in between, a started engine would be nobody's.
            self._process = ManagedProcess.start(argv, env, self.log_path, self._state_file)
        except (ProcessError, OSError) as error:
            raise Broken(str(error)) from error
        self.started = time.time()

    def _clear_remains(self) -> None:
        """End what an engine that died unseen has left, and remove its sockets."""
        remains = ManagedProcess.recall(self._state_file)
        if remains is not None:
            remains.terminate_group(_GRACE_SECONDS)
        clear_remains(self.spec, self._sockets.directory)

    async def _launch_command(self) -> tuple[list[str], dict[str, str]]:
        if self._command is not None:
            env = {"SPECDECK_SOCKET": str(self._sockets.telemetry), "SPECDECK_ENGINE": self.engine}
            return self._command, {**os.environ, **env}
        try:
            model = await asyncio.to_thread(resolve, self.spec.model, self._note_model_progress)
            return await asyncio.to_thread(command, self.spec, self._sockets.directory, model)
        except (ModelError, SpecError) as error:
            raise Unstartable(str(error)) from error

    def _note_model_progress(self, text: str) -> None:
        self._phases.begin("model", text)

    def _note_phases(self) -> None:
        """How far the start has come, by vLLM's log; an adopted engine's log has told it to somebody else."""
        if self._log_from is None:
            return
        for name, done in startup_phases(text_since(self.log_path, self._log_from)):
            if not done:
                self._phases.begin(name)
                return
            self._phases.finish(name)

    async def _watch(self) -> None:
        """Until something breaks: a process gone, no health, or the operator's restart."""
        health = asyncio.create_task(self._watch_health())
        try:
            while not health.done():
                self._check_alive()
                self._check_members()
                await asyncio.sleep(_LOOK_SECONDS)
            health.result()
        finally:
            health.cancel()

    async def _watch_health(self) -> None:
        """Beside the look at the processes: an answer that hangs must not hide a death. Ends by raising Broken."""
        failures = 0
        while failures < _HEALTH_FAILURES:
            await asyncio.sleep(_HEALTH_SECONDS)
            failures = 0 if await self._healthy() else failures + 1
            if failures == 0:
                self._backoff.healthy(time.monotonic())
        raise Broken(f"it did not answer {failures} health checks in a row")

    def _check_alive(self) -> None:
        if self._restart_asked.is_set():
            raise Broken("restart asked for by the operator")
        if self._process is None or not self._process.alive():
            raise Broken(f"its API server died{self._reason()}")

    def _reason(self) -> str:
        """What is known of its end: the signal, else the last error in its log of this start."""
        code = self._process.exit_code() if self._process is not None else None
        if code is not None and code < 0:
            return f": {signal.Signals(-code).name}"
        reason = failure_reason(text_since(self.log_path, self._log_from or size_of(self.log_path)))
        return f": {reason[:200]}" if reason else f" without a word (log: {self.log_path})"

    def _check_members(self) -> None:
        assert self._process is not None
        for pid in self._process.missing_members():
            raise Broken(f"{self._names.get(pid, 'a process')} (pid {pid}) died")

    def _remember_members(self) -> None:
        """Note EngineCore and workers: one may die while the API server goes on answering its health."""
        assert self._process is not None
        self._process.remember_members(MEMBER_NAME)
        self._names = self.children()

    def children(self) -> dict[int, str]:
        """EngineCore and workers below the API server, pid → name."""
        members = self._process.members() if self._process is not None else []
        return {stat.pid: stat.name for stat in members if stat.name.startswith(MEMBER_NAME)}

    async def _recover(self, broken: Broken) -> None:
        asked = self._restart_asked.is_set()
        self._restart_asked.clear()
        was_serving = self.state == "serving"
        self.last_broken = str(broken)
        self._phases.fail(str(broken))
        self.state, self.detail = "restarting", str(broken)
        self._tell("engine", f"{self.engine}: {broken}")
        await self._clean_up()
        self.restarts += 1
        pause = 0.0 if asked else self._backoff.failed(time.monotonic())
        if not asked and not was_serving:
            self.state = "failed"
        if isinstance(broken, Unstartable):
            self.detail = str(broken)
            await self._restart_asked.wait()
        else:
            self.detail = f"{str(broken).rstrip('.')}; next start in {pause:.0f} s" if pause else str(broken)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._restart_asked.wait()
        self._restart_asked.clear()
        self.state = "restarting"

    async def _clean_up(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.terminate_group, _GRACE_SECONDS)


def _installed() -> str:
    """Device of the vLLM that is installed; empty where none is."""
    try:
        return installed_device()
    except SpecError:
        return ""
