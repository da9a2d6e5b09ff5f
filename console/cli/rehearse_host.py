"""The host of a rehearsal where no station runs: a station of its own, with a store that is not the operator's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from console.cli.launcher import OPTIONS_FILE, Launcher
from console.cli.outcomes import CheckFailed, Unreachable
from console.cli.ports import free
from console.cli.station import running_station
from console.cli.stop import end_everything
from console.feed.client import FeedClient, FeedError
from console.feed.messages import EngineView, Snapshot
from console.rehearsing.passes.host import ACTOR, HostFailed, Served, own_engine
from console.station.options import StationOptions, options_without_speculation
from engine.places import data_dir, runtime_dir
from engine.sockets import sockets

_STATION_SECONDS: Final = 60.0
_ENGINE_SECONDS: Final = 900.0
_CALIBRATION_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 0.25


class OwnStation:
    """`Host` that starts and ends stations, one at a time: with the drafter, or without speculation."""

    kind: Literal["own"] = "own"
    prefix = ""

    def __init__(self, options: StationOptions, stores: Path, tell: Callable[[str], None]) -> None:
        """`options`: of the station with the drafter. `stores`: the folder for the stations' stores. `tell`: hears what
        is ended."""
        self._tell = tell
        self._options = options
        self._stores = stores
        self._up: tuple[bool, FeedClient, Launcher] | None = None
        self._remembered = _Remembered(runtime_dir() / OPTIONS_FILE)

    async def bring(self, drafting: bool, tell: Callable[[str], None]) -> Served:
        """Where the right one is up already, it is waited for until it serves: it may be starting anew."""
        fresh = self._up is None or self._up[0] != drafting
        if fresh:
            await self.leave()
            self._start(drafting, tell)
        assert self._up is not None
        _, feed, launcher = self._up
        engine = await _serving(feed, launcher, tell if fresh else _nobody)
        if fresh and launcher.options.calibrate:
            await _calibrated(feed, tell)
        return Served(feed, launcher.options.base_url, launcher.options.api_key, engine, fresh)

    async def leave(self) -> None:
        """Ends station, gateway and engine. Another station that runs here by now is left alone.

        Raises:
            HostFailed: one of ours is left.
        """
        if self._up is None:
            return
        _, feed, launcher = self._up
        self._up = None
        await feed.close()
        now = running_station()
        if now is not None and now.info.store != launcher.options.store:
            self._tell(f"another station runs here by now (pid {now.pid}): it is left alone")
            return  # and its options are the ones to remember
        try:
            await asyncio.to_thread(end_everything, self._tell)
        except CheckFailed as error:
            raise HostFailed(error.message) from error
        finally:
            self._remembered.put_back()

    def _start(self, drafting: bool, tell: Callable[[str], None]) -> None:
        """A store for each of the two: what one engine was measured by is nothing to the other."""
        kind = "speculation" if drafting else "without"
        self._stores.mkdir(parents=True, exist_ok=True)
        options = self._options if drafting else options_without_speculation(self._options)
        store = str((self._stores / f"{kind}.duckdb").absolute())
        launcher = Launcher(replace(options, store=store, port=free(options.host)))
        which = "with the drafter" if drafting else "without speculation"
        tell(f"starting a station of its own, its engine {which} (logs: {data_dir() / 'logs'})")
        feed = FeedClient(sockets().feed, sockets().snapshots, actor=ACTOR)
        self._up = drafting, feed, launcher
        try:
            launcher.spawn()
        except Unreachable as error:
            raise HostFailed(error.message) from error


class _Remembered:
    """The options of the operator's last station, by which a console starts that again: not to be ours afterwards."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = path.read_bytes() if path.exists() else None

    def put_back(self) -> None:
        if self._content is None:
            self._path.unlink(missing_ok=True)
        else:
            self._path.touch(mode=0o600)
            self._path.write_bytes(self._content)


async def _serving(feed: FeedClient, launcher: Launcher, tell: Callable[[str], None]) -> EngineView:
    """The engine, once it serves. Raises HostFailed with what station or engine have said."""
    told: set[str] = set()
    began = time.monotonic()
    while True:
        engine = await _seen(feed)
        if launcher.ended():
            raise HostFailed(f"the station ended: {launcher.last_words()}")
        if engine is not None:
            _tell_phases(engine, told, tell)
            if engine.state == "serving" and engine.vllm:
                return engine
            if engine.state == "failed":
                log = data_dir() / "logs" / f"engine-{engine.engine}.log"
                raise HostFailed(f"engine {engine.engine} does not start: {engine.detail} (log: {log})")
        waited = time.monotonic() - began
        if waited > (_STATION_SECONDS if engine is None else _ENGINE_SECONDS):
            what = "the station does not answer" if engine is None else f"engine {engine.engine} does not serve"
            raise HostFailed(f"{what} after {waited:.0f} s: see {launcher.options.log}")
        await asyncio.sleep(_LOOK_SECONDS)


async def _seen(feed: FeedClient) -> EngineView | None:
    """None while the station does not answer."""
    try:
        return own_engine(await feed.request("snapshot", None, Snapshot, 2.0))
    except FeedError:
        return None


def _tell_phases(engine: EngineView, told: set[str], tell: Callable[[str], None]) -> None:
    """Each phase of the start once, with the time it took."""
    for phase in engine.phases:
        if phase.state == "done" and phase.name not in told:
            told.add(phase.name)
            tell(f"  {phase.name}: {phase.seconds or 0:.1f} s")


async def _calibrated(feed: FeedClient, tell: Callable[[str], None]) -> None:
    """Until the engine's step times are measured, by which `adaptive` decides, or won't be."""
    tell(f"the engine's step times are measured for `adaptive`: at most {_CALIBRATION_SECONDS:.0f} s")
    until = time.monotonic() + _CALIBRATION_SECONDS
    while time.monotonic() < until:
        calibration = (await feed.request("snapshot", None, Snapshot)).calibration
        if calibration is None or calibration.state in ("done", "skipped"):
            return
        await asyncio.sleep(_LOOK_SECONDS)
    tell("the engine was not calibrated in time: `adaptive` begins without it")


def _nobody(text: str) -> None:
    pass
