"""The demo's traffic on this station's engine: a process of its own, started by a console or by `specdeck demo`.

One at a time, by the state file that both share. It keeps how it stands in a file; this reads it. It ends with the
station: nobody would see what it does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from console.feed.messages import DemoTrafficView
from console.feed.protocol import LONGEST_DEMO_SECONDS
from console.statefile import state_path
from console.station.log_tail import last_words
from console.station.rehearsal_process import Refused, clear_away, how_it_ended
from console.traffic.progress import Progress
from engine.process import ManagedProcess, ProcessError

ROLE: Final = "traffic"
TAG_PREFIX: Final = "demo-"
KEPT_SECONDS: Final = 60.0
"""How long the end of it is shown."""
LOOK_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 60.0
"""For a gateway that does not answer."""
GOING_ON: Final = frozenset({"waiting", "running"})


def progress_path(directory: Path) -> Path:
    """Where the traffic keeps how it stands."""
    return directory / "traffic.progress"


class DemoTraffic:
    """On the event loop. `hindrance` says why none may begin now; None: one may."""

    def __init__(
        self,
        base_url: str,
        directory: Path,
        logs: Path,
        tell: Callable[[str, str], None],
        hindrance: Callable[[], str | None],
        *,
        command: list[str] | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`directory`: of the state file. `command`: started in place of the demo's. `api_key`: of the public port."""
        self._base_url = base_url
        self._state_file = state_path(directory, ROLE)
        self._progress = progress_path(directory)
        self._log = logs / "traffic.log"
        self._tell = tell
        self._hindrance = hindrance
        self._command = command or [sys.executable, "-m", "console.cli.demo_traffic"]
        self._api_key = api_key
        self._clock = clock
        self._process: ManagedProcess | None = None
        self._view: DemoTrafficView | None = None
        self._ended: float | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def view(self) -> DemoTrafficView | None:
        return self._view

    def goes_on(self) -> bool:
        return self._view is not None and self._view.state in GOING_ON

    def start(self, seconds: float) -> DemoTrafficView:
        """Raises Refused: it goes on already, or may not begin now."""
        if not 0 < seconds <= LONGEST_DEMO_SECONDS:
            raise Refused(f"seconds: {seconds:g} must be above 0, at most {LONGEST_DEMO_SECONDS:.0f}")
        self._find()
        if self._process is not None:
            raise Refused(f"the demo's traffic goes on already (pid {self._process.pid})")
        if (why := self._hindrance()) is not None:
            raise Refused(why)
        argv = [
            *self._command, "--base-url", f"{self._base_url}/v1", "--profile", "gentle", "--scale", "1",
            "--duration", str(seconds), "--tag-prefix", TAG_PREFIX, "--patience", str(PATIENCE_SECONDS),
            "--progress", str(self._progress),
        ]  # fmt: skip
        env = dict(os.environ)
        if self._api_key:
            env["SPECDECK_API_KEY"] = self._api_key
        self._progress.unlink(missing_ok=True)
        try:
            self._process = ManagedProcess.start(argv, env, self._log, self._state_file)
        except (ProcessError, OSError) as error:
            raise Refused(f"the demo's traffic can't be started: {error}") from error
        return self._begin(self._process)

    async def stop(self) -> DemoTrafficView:
        """End it; requests under way are dropped. Raises Refused: none goes on."""
        self._find()
        process = self._process
        if process is None or self._view is None:
            raise Refused("no demo traffic goes on")
        self._stopping = True
        await clear_away(process)
        await self.look()
        return self._view

    async def run(self) -> None:
        """For ever: see how it stands."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        self._find()
        process = self._process
        if process is None:
            if self._ended is not None and self._clock() - self._ended > KEPT_SECONDS:
                self._view = self._ended = None
            return
        self._read(process)
        if not process.alive():
            self._process = None
            await clear_away(process)
            self._finish(process)

    async def end(self) -> None:
        """The station stops, and the traffic with it."""
        self._find()
        if self._process is not None:
            await clear_away(self._process)

    def _find(self) -> None:
        """One that was started elsewhere, or under a station before this one."""
        if self._process is None and (found := ManagedProcess.adopt(self._state_file)) is not None:
            self._process = found
            self._begin(found)

    def _begin(self, process: ManagedProcess) -> DemoTrafficView:
        self._ended, self._stopping = None, False
        self._view = DemoTrafficView(state="waiting", pid=process.pid)
        self._tell(ROLE, f"the demo's traffic began (pid {process.pid})")
        return self._view

    def _read(self, process: ManagedProcess) -> None:
        try:
            said = msgspec.json.decode(self._progress.read_bytes(), type=Progress)
        except (OSError, msgspec.DecodeError):
            return  # it has not begun to send
        self._view = DemoTrafficView(
            state="running",
            phase=said.phase,
            seconds_left=said.seconds_left,
            sent=said.sent,
            done=said.done,
            errors=sum(said.errors.values()),
            note=said.note,
            pid=process.pid,
        )

    def _finish(self, process: ManagedProcess) -> None:
        assert self._view is not None
        code = process.exit_code()
        if self._stopping or code == 130:
            view = replace(self._view, state="stopped", seconds_left=None, pid=None)
        elif code == 0 or (code is None and self._view.phase == "over"):
            view = replace(self._view, state="over", seconds_left=None, pid=None)
        else:
            why = last_words(self._log, process.state.log_offset) if code is not None and code > 0 else ""
            view = replace(self._view, state="failed", seconds_left=None, pid=None, note=why or how_it_ended(process))
        self._view, self._ended = view, self._clock()
        self._progress.unlink(missing_ok=True)
        self._tell(ROLE, f"the demo's traffic {_ended_words(view)}")


def _ended_words(view: DemoTrafficView) -> str:
    if view.state == "failed":
        return f"failed: {view.note}"
    return f"is {view.state}: {view.done} of {view.sent} requests were answered"
