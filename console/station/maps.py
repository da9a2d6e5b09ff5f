"""The operating map that holds: kept in the history, shown, and stale once something else serves."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import duckdb

from console.feed.messages import MapSummary
from console.feed.protocol import FingerprintParams, MapAnswer, MapPut
from console.feed.server import FeedError
from console.picturing.map_summary import stale, summary
from console.station.engines import KnownEngine
from console.station.hardware_words import HardwareWords
from console.station.policy_answer import controlled
from console.station.recorder import Recorder
from engine.frames import Announcement, Frame
from engine.records import EngineRecord
from store.operating_map.checking import MapError, check
from store.operating_map.fingerprint import Fingerprint
from store.operating_map.fingerprinting import fingerprint
from store.operating_map.keeping import control, last_map, told
from store.operating_map.records import OperatingMap

if TYPE_CHECKING:
    from console.station.station import Station

log = logging.getLogger(__name__)


class Maps:
    """On the event loop. `held` is the last map, also where an earlier station or a rehearsal of its own kept it."""

    def __init__(self, recorder: Recorder, hardware: HardwareWords) -> None:
        self.held = _recalled(recorder)
        self.hardware = hardware
        self._asking: asyncio.Task[str] | None = None
        self._compared: tuple[OperatingMap, EngineRecord | None, str | None] | None = None
        self._stale: list[str] = []

    def take(self, known: KnownEngine, message: Frame | Announcement) -> None:
        """What an engine said: what it runs on is asked before anybody wants to know."""
        record = known.record
        if isinstance(message, Frame) or record is None or self.hardware.of(record) is not None:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self.hardware.ask(record))

    def view(self, serving: EngineRecord | None) -> MapSummary | None:
        """`serving`: the record of the engine that serves; None: none does."""
        return None if self.held is None else summary(self.held, self.stale(serving))

    def stale(self, serving: EngineRecord | None) -> list[str]:
        """What of the map that holds is no longer so. Compared anew only where something is another."""
        if self.held is None:
            return []
        compared = (self.held, serving, None if serving is None else self.hardware.of(serving))
        if self._compared is None or any(old is not new for old, new in zip(self._compared, compared, strict=True)):
            self._compared, self._stale = compared, stale(*compared)
        return self._stale


async def engine_fingerprint(station: Station, params: FingerprintParams, actor: str) -> Fingerprint:
    """Raises FeedError where there is no such engine, or it has not said yet what it is."""
    control = controlled(station)
    engine = params.engine or control.main_engine()
    known = control.roster.engines.get(engine)
    if known is None:
        raise FeedError("bad_params", f"there is no engine {engine!r}" if engine else "there is no engine here yet")
    record = known.announced()
    if record is None:
        raise FeedError("refused", f"engine {engine} has not said yet what it runs: wait until it serves")
    return fingerprint(record, await control.maps.hardware.ask(record))


async def map_get(station: Station, _: None, actor: str) -> MapAnswer:
    if station.control is None:
        return MapAnswer(map=None)
    maps, serving = station.control.maps, station.control.serving_record()
    if serving is not None:
        await maps.hardware.ask(serving)
    return MapAnswer(map=maps.held, stale=maps.stale(serving), engine=None if serving is None else serving.engine)


async def map_put(station: Station, params: MapPut, actor: str) -> MapAnswer:
    """Keep a map: from now on it is the one that holds. Raises FeedError where it can't be meant."""
    maps = controlled(station).maps
    try:
        check(params.map)
    except MapError as error:
        raise FeedError("bad_params", f"map_put: {error}") from error
    station.recorder.put(control(params.map, time.time(), actor))
    station.tell("control", f"{actor}: {told(params.map)}")
    maps.held = params.map
    return await map_get(station, None, actor)


def _recalled(recorder: Recorder) -> OperatingMap | None:
    try:
        with recorder.reading() as connection:
            return last_map(connection)
    except duckdb.Error as error:
        log.warning("the operating map can't be read and is not shown: %s", error)
        return None
