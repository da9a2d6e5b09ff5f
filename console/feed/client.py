"""The console's end of the feed: snapshots as they come, and requests with a deadline.

`Feed` is what the app and the commands are written against; `FeedClient` is the one over ZeroMQ. It reconnects by
itself when a new station binds the same sockets, and says so when nothing is heard.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import msgspec
import zmq
import zmq.asyncio

from console.feed.messages import FEED_VERSION, Snapshot
from console.feed.protocol import ErrorCode, Hello, Method, Reply, Request
from engine.sockets import ipc

SILENCE_SECONDS: Final = 2.0
"""The station publishes four times a second: eight in a row missing is no hiccup."""

RECONNECT_MS: Final = 100
RECONNECT_MAX_MS: Final = 1000
GREET_AGAIN_SECONDS: Final = 5.0

Result = TypeVar("Result")


class FeedError(Exception):
    """A request that came to nothing. `code` as in `protocol.ErrorCode`; the text says what to do."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message


@dataclass(frozen=True)
class Silence:
    """No snapshot that could be shown. `since`: Unix seconds of the last one, None when there never was one."""

    since: float | None
    reason: str
    incompatible: bool = False
    """The station speaks, but another version: starting another station would not help."""


Update = Snapshot | Silence


class Feed(Protocol):
    """What a console needs of a station (or of a replay, which speaks the same)."""

    def snapshots(self) -> AsyncGenerator[Update, None]:
        """Each snapshot as it comes, conflated to the newest; a `Silence` every 2 s without one. Never ends."""
        ...

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        """Ask the station something and wait for the answer.

        Raises:
            FeedError: `unreachable` when no station is connected, `deadline` when none answered within `timeout`
                seconds, or whatever the station refused with.
        """
        ...


class FeedClient:
    """A `Feed` over the station's two sockets. Use it inside one event loop, and close it there."""

    def __init__(
        self,
        feed_path: Path,
        snapshots_path: Path,
        *,
        actor: str = "operator",
        silence_seconds: float = SILENCE_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._feed_path = feed_path
        self._snapshots_path = snapshots_path
        self._actor = actor
        self._silence_seconds = silence_seconds
        self._now = now
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._context: zmq.asyncio.Context | None = None
        self._dealer: zmq.asyncio.Socket | None = None
        self._receiver: asyncio.Task[None] | None = None
        self._greeter: asyncio.Task[None] | None = None
        self._greeted: str | None = None
        self._greet_after = 0.0
        self._refusal: FeedError | None = None
        self._decode = msgspec.msgpack.Decoder(Snapshot).decode

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give up whatever is under way and close the sockets. Safe to call twice."""
        tasks = [task for task in (self._receiver, self._greeter) if task is not None]
        self._receiver = self._greeter = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._context is not None:
            self._context.destroy(linger=0)
        self._context = self._dealer = None

    # Snapshots

    async def snapshots(self) -> AsyncGenerator[Update, None]:
        subscriber = self._socket(zmq.SUB, self._snapshots_path, {zmq.CONFLATE: 1})
        subscriber.setsockopt(zmq.SUBSCRIBE, b"")
        heard: float | None = None
        silence_ms = int(self._silence_seconds * 1000)
        try:
            while True:
                if not await subscriber.poll(silence_ms):
                    yield Silence(heard, f"no snapshot from the station at {self._snapshots_path}")
                    continue
                update = self._read(await subscriber.recv(), heard)
                if isinstance(update, Snapshot):
                    heard = self._now()
                yield update
        finally:
            subscriber.close(linger=0)

    def _read(self, payload: bytes, heard: float | None) -> Update:
        try:
            snapshot = self._decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Silence(heard, _unreadable(payload, error), incompatible=True)
        if snapshot.v != FEED_VERSION:
            return Silence(heard, _other_version(snapshot.v), incompatible=True)
        self._greet(snapshot.station)
        if self._refusal is not None:
            return Silence(heard, self._refusal.message, incompatible=True)
        return snapshot

    def _greet(self, station: str) -> None:
        """Say hello to a station not met before, beside the stream: the picture waits for nothing."""
        busy = self._greeter is not None and not self._greeter.done()
        if busy or station == self._greeted or time.monotonic() < self._greet_after:
            return
        self._greet_after = time.monotonic() + GREET_AGAIN_SECONDS
        self._greeter = asyncio.create_task(self._hello_to(station))

    async def _hello_to(self, station: str) -> None:
        try:
            await self.hello()
        except FeedError as error:
            if error.code != "version":
                return  # the stream itself shows whether the station lives; asked again in a while
            self._refusal = error
        else:
            self._refusal = None
        self._greeted = station

    # Requests

    async def hello(self, timeout: float = 2.0) -> Hello:
        """Exchange versions.

        Raises:
            FeedError: `version` when the two can't talk, naming which side is too old; otherwise as `request`.
        """
        hello = await self.request("hello", None, Hello, timeout)
        if hello.min_version > FEED_VERSION:
            raise FeedError(
                "version",
                f"this console is too old: it speaks feed version {FEED_VERSION}, station {hello.specdeck} wants "
                f"{hello.min_version} or later; update specdeck and attach again",
            )
        if hello.version < FEED_VERSION:
            raise FeedError(
                "version",
                f"this console is too new: it speaks feed version {FEED_VERSION}, station {hello.specdeck} only "
                f"{hello.version}; restart the station with this specdeck",
            )
        return hello

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        dealer = self._connected_dealer()
        # IMMEDIATE: without a connection nothing is queued, or a change meant for a dead station would reach its heir.
        started = time.monotonic()
        if not await dealer.poll(int(timeout * 1000), zmq.POLLOUT):  # type: ignore[call-arg]  # the stub lacks flags
            raise FeedError("unreachable", f"no station answers at {self._feed_path}; start one with: specdeck serve")
        number = next(self._ids)
        remaining = max(0.001, timeout - (time.monotonic() - started))
        request = Request(
            id=number,
            method=method,
            params=msgspec.to_builtins(params) if params is not None else {},
            deadline=time.time() + remaining,
            actor=self._actor,
        )
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await dealer.send(msgspec.msgpack.encode(request))
            reply = await asyncio.wait_for(self._waiting[number], remaining)
        except TimeoutError:
            raise FeedError("deadline", f"the station did not answer {method} within {timeout:g} s") from None
        finally:
            del self._waiting[number]
        return _result(reply, method, result_type)

    def _connected_dealer(self) -> zmq.asyncio.Socket:
        if self._dealer is None:
            self._dealer = self._socket(zmq.DEALER, self._feed_path, {zmq.IMMEDIATE: 1})
            self._receiver = asyncio.create_task(self._receive(self._dealer))
        return self._dealer

    async def _receive(self, dealer: zmq.asyncio.Socket) -> None:
        decode = msgspec.msgpack.Decoder(Reply).decode
        while True:
            payload = await dealer.recv()
            with suppress(msgspec.DecodeError, UnicodeDecodeError):  # whoever waits for it gets a deadline error
                reply = decode(payload)
                future = self._waiting.get(reply.id)
                if future is not None and not future.done():
                    future.set_result(reply)

    def _socket(self, kind: int, path: Path, options: Mapping[int, int]) -> zmq.asyncio.Socket:
        if self._context is None:
            self._context = zmq.asyncio.Context()
        socket: zmq.asyncio.Socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
        for option, value in options.items():
            socket.setsockopt(option, value)
        socket.connect(ipc(path))
        return socket


def _result(reply: Reply, method: str, result_type: type[Result]) -> Result:
    if reply.error is not None:
        raise FeedError(reply.error.code, reply.error.message)
    try:
        return msgspec.msgpack.decode(reply.result, type=result_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FeedError(
            "version",
            f"the station's answer to {method} can't be read ({error}); console and station are of different "
            f"versions: restart the station with this specdeck",
        ) from error


def _unreadable(payload: bytes, error: Exception) -> str:
    version: Any = None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, AttributeError):
        version = msgspec.msgpack.decode(payload).get("v")
    if isinstance(version, int) and version != FEED_VERSION:
        return _other_version(version)
    return f"the station's snapshot can't be read: {error}"


def _other_version(version: int) -> str:
    if version > FEED_VERSION:
        return f"this console is too old: it speaks feed version {FEED_VERSION}, the station {version}; update specdeck"
    return (
        f"this console is too new: it speaks feed version {FEED_VERSION}, the station {version}; "
        f"restart the station with this specdeck"
    )
