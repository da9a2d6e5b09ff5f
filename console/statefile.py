"""How the command line finds a station: `station.json` in the runtime directory, a state file of `engine.process` that
the station writes about itself."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
import psutil

from engine.process import ManagedProcess, ProcessState
from engine.sessions import start_ticks


class StationInfo(msgspec.Struct, frozen=True):
    """What a station says of itself beside its process: the `extra` of its state file."""

    station: str
    store: str
    base_url: str
    foreground: bool
    """`specdeck serve`: whoever started that starts it again, not a console."""


class RunningStation(msgspec.Struct, frozen=True):
    pid: int
    log: str
    info: StationInfo


def state_path(directory: Path, role: str) -> Path:
    """The state file of a role: `station`, `gateway`, `engine-e0`."""
    return directory / f"{role}.json"


def read_station(directory: Path) -> RunningStation | None:
    """The living station of a runtime directory. One that is just starting has not said yet who it is: None."""
    process = ManagedProcess.adopt(state_path(directory, "station"))
    if process is None:
        return None
    try:
        info = msgspec.convert(process.extra, type=StationInfo)
    except msgspec.ValidationError:
        return None
    return RunningStation(process.pid, process.state.log, info)


def write_station(directory: Path, info: StationInfo, log: str) -> None:
    """Say that this process is the station."""
    own = psutil.Process()
    state = ProcessState(
        pid=own.pid,
        start_time=own.create_time(),
        start_ticks=start_ticks(own.pid) or 0,
        argv=sys.orig_argv,
        log=log,
        started=time.time(),
        extra=msgspec.to_builtins(info),
    )
    path = state_path(directory, "station")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    draft.replace(path)
