"""Runs one station to its end: lock, store, loop. Returns the exit code of design §6."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Final

from console.station.deciding_settings import BadDeciding, deciding_settings
from console.station.events import EventLog
from console.station.lock import StationHeld, StationLock
from console.station.options import StationOptions
from console.station.recorder import Recorder, open_recorder
from console.station.station import Station
from console.station.webhook_address import BadWebhook, read_webhook
from engine.places import data_dir, runtime_dir
from engine.sockets import Sockets
from store.database import NewerSchema, StoreError
from store.judge.settings import JudgeSettings

OK: Final = 0
BAD_INPUT: Final = 2
HELD: Final = 3


def set_up_logging() -> None:
    """Lines with time and place on stderr; httpx would tell every health check."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def run(options: StationOptions) -> int:
    """Serve until stopped. Errors go to stderr as one line."""
    set_up_logging()
    try:
        deciding_settings(file=options.deciding)  # whoever misspelt one shall know before an engine is started
        if options.webhook:
            read_webhook(options.webhook)
    except (BadDeciding, BadWebhook) as error:
        return _say(error, BAD_INPUT)
    directory = runtime_dir()
    logs = data_dir() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    events = EventLog()
    try:
        lock = StationLock(directory)
        recorder = open_recorder(Path(options.store), events.tell, JudgeSettings(speedup_floor=options.speedup_floor))
    except StationHeld as error:
        return _say(error, HELD)
    except NewerSchema as error:
        return _say(error, BAD_INPUT)
    except StoreError as error:
        return _say(error, HELD)
    try:
        asyncio.run(_serve(options, Sockets(directory), recorder, events, logs))
    finally:
        lock.release()
    return OK


async def _serve(options: StationOptions, sockets: Sockets, recorder: Recorder, events: EventLog, logs: Path) -> None:
    await Station(options, sockets, recorder, events, logs).run()


def _say(error: Exception, code: int) -> int:
    print(f"station: {error}", file=sys.stderr)
    return code
