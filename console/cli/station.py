"""The station as the command line sees it: find it, ask it over the feed, start one, end it."""

from __future__ import annotations

import itertools
import time
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
import zmq

from console.cli.outcomes import BadInput, CheckFailed, Unreachable, say
from console.feed.actor import own_actor
from console.feed.protocol import Hello, Reply, Request, StopParams
from console.statefile import RunningStation, read_station, state_path
from engine.places import runtime_dir
from engine.process import ManagedProcess
from engine.sockets import ipc, sockets

T = TypeVar("T")

_ids = itertools.count(1)
NOT_RUNNING: Final = "no station is running here: start one with `specdeck`, `specdeck demo` or `specdeck serve`"


def running_station() -> RunningStation | None:
    return read_station(runtime_dir())


def require_station() -> RunningStation:
    """Raises Unreachable."""
    station = running_station()
    if station is None:
        raise Unreachable(NOT_RUNNING)
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
    request = Request(
        id=next(_ids), method=method, params=fields, deadline=time.time() + seconds, actor=own_actor()
    )  # fmt: skip
    with _context().socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(ipc(sockets().feed))
        dealer.send(msgspec.msgpack.encode(request))
        if not dealer.poll(int((seconds + 0.5) * 1000)):
            return None
        return msgspec.msgpack.decode(dealer.recv(), type=Reply)


@cache
def _context() -> zmq.Context[zmq.Socket[bytes]]:
    """One for the process, and never ended: an interrupt that leaves a socket open would let its end wait for ever."""
    return zmq.Context()


def stop_station(station: RunningStation, *, everything: bool, seconds: float) -> None:
    """Ask the station to end and wait until its process is gone, not only its state file.

    One that does not answer, or does not end in time, is killed; what it leaves is for `leftovers.end_all`.
    """
    process = ManagedProcess.recall(state_path(runtime_dir(), "station"))
    reply = _exchange("stop", StopParams(everything=everything), 5.0)
    deadline = time.monotonic() + (seconds if reply is not None else 0.0)
    while process is not None and process.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    if process is not None and process.alive():
        say(f"the station (pid {station.pid}) does not end by itself: it is killed")
        process.terminate_group(5.0)
