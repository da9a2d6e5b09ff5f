"""The station as the command line sees it: find it, ask it over the feed, start one, end it."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import psutil
import zmq

from console.cli.outcomes import BadInput, CheckFailed, Unreachable
from console.feed.protocol import Hello, Reply, Request, StopParams
from console.statefile import RunningStation, read_station, state_path
from console.station.options import StationOptions, write_options
from engine.places import data_dir, runtime_dir
from engine.process import ManagedProcess, ProcessError
from engine.sockets import ipc, sockets

T = TypeVar("T")

_ids = itertools.count(1)
_NOT_RUNNING: Final = "no station is running here: start one with `specdeck`, `specdeck demo` or `specdeck serve`"


def running_station() -> RunningStation | None:
    return read_station(runtime_dir())


def require_station() -> RunningStation:
    """Raises Unreachable."""
    station = running_station()
    if station is None:
        raise Unreachable(_NOT_RUNNING)
    return station


def ask(method: str, kind: type[T], params: msgspec.Struct | None = None, *, seconds: float = 30.0) -> T:
    """One request over the feed, decoded as `kind`.

    Raises:
        Unreachable: no station, or it did not answer within `seconds`.
        BadInput: it refused the params or the action.
        CheckFailed: it failed at it.
    """
    station = require_station()
    reply = _exchange(method, params, seconds)
    if reply is None:
        raise Unreachable(
            f"the station (pid {station.pid}) did not answer {method} within {seconds:g} s: see {station.log}"
        )
    if reply.error is None:
        return msgspec.msgpack.decode(reply.result, type=kind)
    text = reply.error.message
    if reply.error.code in ("bad_params", "refused", "unknown_method", "version"):
        raise BadInput(text)
    if reply.error.code in ("deadline", "unreachable"):
        raise Unreachable(text)
    raise CheckFailed(text)


def answers(seconds: float = 1.0) -> bool:
    """Whether a station answers `hello`."""
    reply = _exchange("hello", None, seconds)
    return reply is not None and reply.error is None and bool(msgspec.msgpack.decode(reply.result, type=Hello))


def _exchange(method: str, params: msgspec.Struct | None, seconds: float) -> Reply | None:
    fields: dict[str, Any] = {} if params is None else msgspec.to_builtins(params)
    request = Request(id=next(_ids), method=method, params=fields, deadline=time.time() + seconds)
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(ipc(sockets().feed))
        dealer.send(msgspec.msgpack.encode(request))
        if not dealer.poll(int((seconds + 0.5) * 1000)):
            return None
        return msgspec.msgpack.decode(dealer.recv(), type=Reply)


def log_path() -> Path:
    """Where a station that runs in the background writes its output."""
    folder = data_dir() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "station.log"


def stop_station(station: RunningStation, *, everything: bool, seconds: float) -> None:
    """Ask the station to end and wait until it has; one that does not answer is left to `leftovers.end_all`."""
    reply = _exchange("stop", StopParams(everything=everything), 5.0)
    deadline = time.monotonic() + (seconds if reply is not None else 0.0)
    while time.monotonic() < deadline and psutil.pid_exists(station.pid):
        if running_station() is None:
            return
        time.sleep(0.05)


def start_station(options: StationOptions, *, patience: float = 30.0) -> ManagedProcess:
    """Start a station in the background and wait until it answers. The engine comes up behind it.

    Raises:
        Unreachable: it ended, or does not answer: with its last words.
    """
    directory = runtime_dir()
    file = directory / "station-options.json"
    log = log_path()
    write_options(msgspec.structs.replace(options, log=str(log), stop_all_on_signal=False), file)
    argv = [sys.executable, "-m", "console.station", str(file)]
    began = log.stat().st_size if log.exists() else 0
    try:
        process = ManagedProcess.start(argv, dict(os.environ), log, state_path(directory, "station"))
    except ProcessError as error:
        raise Unreachable(str(error)) from error
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if not process.alive():
            raise Unreachable(_last_words(log, began))
        if running_station() is not None and answers():
            return process
        time.sleep(0.05)
    raise Unreachable(f"the station (pid {process.pid}) does not answer after {patience:g} s: see {log}")


def _last_words(log: Path, offset: int) -> str:
    """What a station that ended at once has said: its one line of error, else the end of its log."""
    lines = [line for line in log.read_bytes()[offset:].decode("utf-8", "replace").splitlines() if line.strip()]
    told = [line.removeprefix("station: ") for line in lines if line.startswith("station: ")]
    return told[-1] if told else f"the station ended at once: {lines[-1] if lines else 'no message'} (log: {log})"
