"""The engines that the station itself starts: one, and where asked for a second one without speculation beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from console.statefile import state_path
from console.station.engine_supervisor import EngineSupervisor
from console.station.options import OWNED_ENGINE, VANILLA_ENGINE, StationOptions
from engine.launch import http_socket
from engine.process import ManagedProcess, ProcessError
from engine.sockets import Sockets

_GRACE_SECONDS: Final = 10.0
_SETTLED_SECONDS: Final = 3.0
"""After the first engine serves: by then its calibration has begun, if it is to begin now."""

Tell = Callable[[str, str], None]


class OwnEngines:
    """`supervisors` by engine id, in the order in which they are started; empty where engines are only listened to.

    `calibrating` says how far the calibration of the first one is, None where there is none.
    """

    def __init__(self, options: StationOptions, sockets: Sockets, logs: Path, tell: Tell) -> None:
        self._sockets = sockets
        self._tell = tell
        self.calibrating: Callable[[], str | None] = lambda: None
        self.supervisors: dict[str, EngineSupervisor] = {}
        if not options.engine:
            return
        main = EngineSupervisor(
            options.engine_spec(), sockets, log_path(logs, OWNED_ENGINE), tell, stand_in=options.engine_command
        )
        self.supervisors[OWNED_ENGINE] = main
        if options.vanilla_engine:
            self.supervisors[VANILLA_ENGINE] = EngineSupervisor(
                options.vanilla_spec(),
                sockets,
                log_path(logs, VANILLA_ENGINE),
                tell,
                stand_in=options.vanilla_command,
                wait_for=Turn(main, lambda: self.calibrating()).waits,
            )

    @property
    def main(self) -> EngineSupervisor | None:
        return self.supervisors.get(OWNED_ENGINE)

    @property
    def vanilla_http(self) -> Path | None:
        """The unix socket of the engine without speculation, None where there is none."""
        return http_socket(VANILLA_ENGINE, self._sockets.directory) if VANILLA_ENGINE in self.supervisors else None

    def adopt(self) -> set[str]:
        """Take over what an earlier station left serving; the ids of those that were. What is not wanted any more is
        ended: that blocks for seconds, but nobody is served by this station yet."""
        if VANILLA_ENGINE not in self.supervisors:
            self._end_vanilla()
        return {engine for engine, supervisor in self.supervisors.items() if supervisor.adopt()}

    def _end_vanilla(self) -> None:
        """An engine that nobody would send to holds half of the machine."""
        left = ManagedProcess.recall(state_path(self._sockets.directory, f"engine-{VANILLA_ENGINE}"))
        if left is None or not (left.alive() or left.leftovers()):
            return
        try:
            left.terminate_group(_GRACE_SECONDS)
        except ProcessError as error:
            self._tell("engine", f"{VANILLA_ENGINE}, left by a station before, could not be ended: {error}")
        else:
            self._tell("engine", f"{VANILLA_ENGINE}, left by a station before, was ended: --vanilla-engine is off")

    async def stop(self) -> None:
        """End them all, side by side."""
        await asyncio.gather(*(supervisor.stop() for supervisor in self.supervisors.values()))


class Turn:
    """When the second engine starts: once the first has come up (or failed to) and is measured. Two that load at once
    see each other's memory in vLLM's profile, starve each other of cores while clients wait, and spoil step times."""

    def __init__(self, first: EngineSupervisor, calibrating: Callable[[], str | None]) -> None:
        self._first = first
        self._calibrating = calibrating
        self._serving_since: float | None = None

    def waits(self) -> str | None:
        """What for; None when it may start."""
        if self._first.state == "starting":
            return f"for {self._first.engine} to serve"
        if self._first.state != "serving":
            return None
        if self._serving_since is None:
            self._serving_since = time.monotonic()
        calibration = self._calibrating()
        about_to = calibration == "waiting" and time.monotonic() - self._serving_since < _SETTLED_SECONDS
        if calibration == "running" or about_to:
            return f"for {self._first.engine} to be calibrated"
        return None


def log_path(logs: Path, engine: str) -> Path:
    """Where an engine of ours writes its output."""
    return logs / f"engine-{engine}.log"
