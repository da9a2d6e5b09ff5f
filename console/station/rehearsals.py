"""The rehearsal that goes on: a process of its own, started here or from a shell, that tells of itself.

One at a time. It is gone when its process is, or when nothing was heard of it for long; then it has failed, unless it
had said its last word.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from console.feed.messages import RehearsalView
from console.station.rehearsal_process import Refused, check_plan, clear_away, how_it_ended, interrupt
from engine import sessions
from engine.process import ManagedProcess, ProcessError

SILENT_SECONDS: Final = 30.0
KEPT_SECONDS: Final = 600.0
"""How long the end of one is shown."""
LOOK_SECONDS: Final = 0.5
END_SECONDS: Final = 20.0
"""For a rehearsal to give the policy back once it is interrupted."""
OVER: Final = frozenset({"over", "stopped", "failed"})


class Rehearsals:
    """On the event loop. `hindrance` says why none may begin now; None: one may."""

    def __init__(
        self,
        logs: Path,
        state_file: Path,
        tell: Callable[[str, str], None],
        hindrance: Callable[[], str | None],
        *,
        command: list[str] | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`command`: started in place of `specdeck rehearse`. `api_key`: of the public port."""
        self._log = logs / "rehearsal.log"
        self._state_file = state_file
        self._tell = tell
        self._hindrance = hindrance
        self._command = command or [sys.executable, "-m", "console.cli", "rehearse"]
        self._api_key = api_key
        self._clock = clock
        self._view: RehearsalView | None = None
        self._heard = 0.0
        self._ended: float | None = None
        self._ticks: int | None = None
        """Start of the process that tells of itself: pids are used again."""
        self._process = ManagedProcess.adopt(state_file)
        if self._process is not None:
            self._show(RehearsalView(id="", plan=str(self._process.extra.get("plan", "")), state="starting",
                                     note="began under a station before this one", pid=self._process.pid))  # fmt: skip

    @property
    def pid(self) -> int | None:
        """Of the process that was started here, as long as it runs."""
        return None if self._process is None else self._process.pid

    def view(self) -> RehearsalView | None:
        return self._view

    def start(self, plan: str) -> RehearsalView:
        """Raises Refused: another goes on, it may not begin now, or `plan` can be none."""
        if (why := self._hindrance()) is not None:
            raise Refused(why)
        self._check_alone()
        check_plan(plan)
        env = dict(os.environ)
        if self._api_key:
            env["SPECDECK_API_KEY"] = self._api_key
        try:  # on the loop, milliseconds: two that are asked for at once come one after the other
            self._process = ManagedProcess.start(
                [*self._command, plan], env, self._log, self._state_file, {"plan": plan}
            )
        except (ProcessError, OSError) as error:
            raise Refused(f"the rehearsal can't be started: {error}") from error
        view = RehearsalView(id="", plan=plan, state="starting", pid=self._process.pid)
        self._show(view)
        return view

    def progress(self, view: RehearsalView) -> None:
        """What a rehearsal tells of itself. Raises Refused: another one goes on."""
        if view.pid is not None and view.pid <= 1:
            raise Refused(f"pid {view.pid} is no rehearsal's")
        before, going = self._view, self._view is not None and self._ended is None
        if going and before is not None and not _same(before, view):
            raise Refused(f"another rehearsal goes on: {_named(before)}; stop it first, or wait for its end")
        if going and before is not None and view.pid is None:
            view = replace(view, pid=before.pid)
        if before is None or not going or before.id != view.id:
            self._tell("rehearsal", f"{view.id} began, plan {view.plan}")
        self._show(view)
        if view.state in OVER:
            self._finish(view)

    def interrupt(self, id: str | None) -> RehearsalView:
        """Ask the process to give the policy back and end. Raises Refused."""
        view, pid = self._view, self._living()
        if view is None or (self._ended is not None and pid is None):
            raise Refused("no rehearsal goes on")
        if id is not None and id != view.id:
            raise Refused(f"{id} does not go on: {_named(view)} does")
        if pid is None:
            raise Refused(f"{_named(view)} runs where this station can't reach it: interrupt it there")
        interrupt(pid)
        self._view = replace(view, note="interrupted: it gives the policy back and ends")
        self._tell("rehearsal", f"{_named(view)} was interrupted")
        return self._view

    async def run(self) -> None:
        """For ever: see whether it is still there."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        process = self._process
        if process is not None and not process.alive():
            self._process = None
            await clear_away(process)
            if self._ended is None and self._view is not None and self._view.pid in (None, process.pid):
                self._fail(how_it_ended(process))
        self._watch_what_is_told()

    async def end(self) -> None:
        """The station stops: what was started here is interrupted first, and ended if it does not heed that."""
        process = self._process
        if process is None or not process.alive():
            return
        self._tell("rehearsal", "the station stops: the rehearsal is interrupted and gives the policy back first")
        interrupt(process.pid)
        deadline = self._clock() + END_SECONDS
        while process.alive() and self._clock() < deadline:
            await asyncio.sleep(0.1)
        await clear_away(process)

    def _watch_what_is_told(self) -> None:
        view, now = self._view, self._clock()
        if view is None:
            return
        if self._ended is not None:
            if now - self._ended > KEPT_SECONDS:
                self._view = None
        elif view.pid is not None and view.pid != self.pid and self._living() is None:
            self._fail(f"its process (pid {view.pid}) is gone")
        elif now - self._heard > SILENT_SECONDS:
            running = "" if view.pid is None else f", pid {view.pid} still runs"
            self._fail(f"nothing was heard of it for {SILENT_SECONDS:.0f} s{running}")

    def _check_alone(self) -> None:
        view = self._view
        going = view is not None and (self._ended is None or self._living() is not None)
        if going or self._process is not None:
            shown = "one" if view is None else _named(view)
            raise Refused(f"a rehearsal goes on already: {shown}; stop it first, or wait for its end")

    def _show(self, view: RehearsalView) -> None:
        if self._view is None or self._view.pid != view.pid:
            self._ticks = None if view.pid is None else sessions.start_ticks(view.pid)
        self._view, self._heard, self._ended = view, self._clock(), None

    def _fail(self, why: str) -> None:
        assert self._view is not None
        self._view = replace(self._view, state="failed", note=why, seconds_left=None)
        self._finish(self._view)

    def _finish(self, view: RehearsalView) -> None:
        self._ended = self._clock()
        self._tell("rehearsal", f"{_named(view)} {view.state}{f': {view.note}' if view.note else ''}")

    def _living(self) -> int | None:
        """The pid that told of itself, as long as it is the same process."""
        pid = None if self._view is None else self._view.pid
        stat = None if pid is None else sessions.read_stat(pid)
        return pid if stat is not None and stat.start_ticks == self._ticks else None


def _same(before: RehearsalView, view: RehearsalView) -> bool:
    """Whether both are told by one rehearsal. One that was only just started has no id yet."""
    return before.id in ("", view.id) and (before.pid is None or view.pid is None or before.pid == view.pid)


def _named(view: RehearsalView) -> str:
    return view.id or f"plan {view.plan}"
