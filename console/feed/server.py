"""The answering end of the feed: a ROUTER for requests and a PUB for snapshots. A station or a replay hands it its
endpoints; this module knows the protocol (version, deadline, errors as objects) and nothing of what is behind it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import zmq
import zmq.asyncio

from console.feed.messages import FEED_VERSION, Snapshot
from console.feed.protocol import ErrorCode, ErrorObject, Reply, Request
from engine.sockets import Sockets, ipc

log = logging.getLogger(__name__)

MIN_VERSION: Final = 1
"""The oldest console this station still answers."""

MAX_REQUEST_BYTES: Final = 1 << 20
LONGEST_WAIT_SECONDS: Final = 600.0
"""A deadline further away than this is cut: no request may hold on to the station for ever."""


class FeedError(Exception):
    """What an endpoint raises to answer with an error object: a code of the protocol and one line with the remedy."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


class Endpoint(NamedTuple):
    """One method of the feed: the type of its params (None: takes none) and what answers it."""

    params: Any
    answer: Callable[[Any, str], Awaitable[Any]]
    """Called with the decoded params and the actor; returns anything msgspec can encode, or raises `FeedError`."""


class FeedServer:
    """Serves one feed under the sockets' `feed` and `snapshots` paths until closed."""

    def __init__(self, context: zmq.asyncio.Context, sockets: Sockets, endpoints: Mapping[str, Endpoint]) -> None:
        self._endpoints = dict(endpoints)
        self._router = context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 500)  # the reply to `stop` still has to leave
        self._router.setsockopt(zmq.MAXMSGSIZE, MAX_REQUEST_BYTES)
        self._router.bind(ipc(sockets.feed))
        self._snapshots = context.socket(zmq.PUB)
        self._snapshots.setsockopt(zmq.LINGER, 0)
        self._snapshots.setsockopt(zmq.SNDHWM, 4)  # a snapshot nobody took is worth nothing after the next one
        self._snapshots.bind(ipc(sockets.snapshots))
        self._encoder = msgspec.msgpack.Encoder()
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Answer requests for ever, each in its own task, so that a slow one delays nobody."""
        while True:
            envelope = await self._router.recv_multipart()
            task = asyncio.create_task(self._answer(envelope[:-1], envelope[-1]))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def publish(self, snapshot: Snapshot) -> None:
        """Send the whole picture to every console that listens."""
        await self._snapshots.send(self._encoder.encode(snapshot))

    async def drain(self, seconds: float = 1.0) -> None:
        """Let answers that are under way leave."""
        others = self._answering - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=seconds)

    def close(self) -> None:
        for task in self._answering:
            task.cancel()
        self._router.close()
        self._snapshots.close()

    async def _answer(self, route: list[bytes], payload: bytes) -> None:
        reply = await self._reply(payload)
        try:
            await self._router.send_multipart([*route, self._encoder.encode(reply)])
        except zmq.ZMQError as error:
            log.warning("the answer to request %d could not be sent: %s", reply.id, error)

    async def _reply(self, payload: bytes) -> Reply:
        try:
            request = msgspec.msgpack.decode(payload, type=Request)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _refusal(0, "bad_params", f"not a request of the feed: {error}")
        try:
            return Reply(id=request.id, result=msgspec.Raw(self._encoder.encode(await self._result(request))))
        except FeedError as error:
            return _refusal(request.id, error.code, str(error))
        except TimeoutError:
            return _refusal(request.id, "deadline", f"{request.method} took longer than its deadline allows")
        except Exception as error:  # an endpoint's fault must not take the feed down with it
            log.exception("the feed's %s failed", request.method)
            return _refusal(request.id, "failed", f"{request.method}: {type(error).__name__}: {error}")

    async def _result(self, request: Request) -> Any:
        if not MIN_VERSION <= request.v <= FEED_VERSION:
            older = "console" if request.v < MIN_VERSION else "station"
            raise FeedError(
                "version",
                f"this station speaks feed versions {MIN_VERSION} to {FEED_VERSION}, the console {request.v}: "
                f"update the {older}",
            )
        endpoint = self._endpoints.get(request.method)
        if endpoint is None:
            known = ", ".join(sorted(self._endpoints))
            raise FeedError("unknown_method", f"no method {request.method!r}; there are {known}")
        remaining = request.deadline - time.time()
        if remaining <= 0:
            raise FeedError("deadline", f"{request.method} arrived after its deadline")
        params = _params(endpoint, request)
        async with asyncio.timeout(min(remaining, LONGEST_WAIT_SECONDS)):
            return await endpoint.answer(params, request.actor)


def _params(endpoint: Endpoint, request: Request) -> Any:
    if endpoint.params is None:
        return None
    try:
        return msgspec.convert(request.params, type=endpoint.params)
    except msgspec.ValidationError as error:
        raise FeedError("bad_params", f"{request.method}: {error}") from error


def _refusal(request: int, code: ErrorCode, message: str) -> Reply:
    return Reply(id=request, error=ErrorObject(code, message))
