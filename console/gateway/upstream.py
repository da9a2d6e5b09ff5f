"""One request to vLLM's API server over its unix socket: a connection of its own, closed to abort.

A connection per request costs about a tenth of a millisecond on a unix socket and buys simplicity: none is stale, and
closing it is the abort that vLLM sees.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

import h11

from console.gateway.headers import Headers

_READ_BYTES = 256 * 1024
_BACKLOG_PATIENCE = 2.0
"""Seconds to wait for a place when the engine's listen queue is full."""


class EngineUnavailable(ConnectionError):
    """Nothing listens on the socket: the engine is down or still starting."""


class EngineLost(ConnectionError):
    """The connection ended before the response did."""


class EngineGarbled(ConnectionError):
    """What came back is not HTTP."""


class UnsendableRequest(ValueError):
    """The request cannot be written as HTTP/1.1."""


class UpstreamExchange:
    """One request and its response. Sending and receiving may run side by side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=256 * 1024)

    async def send_head(self, method: str, target: bytes, headers: Headers) -> None:
        """Send the request line and headers.

        Raises:
            UnsendableRequest: a character that HTTP does not allow.
        """
        try:
            request = h11.Request(method=method, target=target, headers=headers)
        except h11.LocalProtocolError as error:
            raise UnsendableRequest(str(error)) from error
        await self._write(request)

    async def send_body(self, data: bytes) -> None:
        """Send a piece of the body. An engine that stopped reading is no error: its response says why."""
        if data:
            await self._write(h11.Data(data=data))

    async def end_body(self) -> None:
        await self._write(h11.EndOfMessage())

    async def response_head(self) -> tuple[int, Headers]:
        """Wait for the final status and headers.

        Raises:
            EngineLost: the connection ended first.
            EngineGarbled: not HTTP.
        """
        event = await self._next_event()
        while isinstance(event, h11.InformationalResponse):
            event = await self._next_event()
        if not isinstance(event, h11.Response):
            raise EngineLost("closed before a response")
        return event.status_code, list(event.headers)

    async def response_body(self) -> bytes | None:
        """The next piece of the body as it arrived (a chunk stays a chunk), None at the end.

        Raises:
            EngineLost: the connection ended before the body did.
            EngineGarbled: not HTTP.
        """
        event = await self._next_event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return None
        raise EngineLost("closed inside the response")

    def abort(self) -> None:
        """Close at once: vLLM stops generating, and whoever waits for the response gets `EngineLost`."""
        self._writer.transport.abort()

    async def _next_event(self) -> object:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                if self._http.trailing_data[1]:
                    raise EngineLost(str(error)) from error
                raise EngineGarbled(str(error)) from error
            if event is not h11.NEED_DATA:
                return event
            try:
                data = await self._reader.read(_READ_BYTES)
            except OSError as error:
                raise EngineLost(str(error)) from error
            self._http.receive_data(data)

    async def _write(self, event: h11.Event) -> None:
        # A failure to send is not the end: the response may be there to read (413 while the body was on its way), and
        # where it is not, reading says so.
        with contextlib.suppress(OSError, h11.LocalProtocolError):
            self._writer.write(self._http.send(event) or b"")
            await self._writer.drain()


async def connect(path: Path) -> UpstreamExchange:
    """Open a connection for one request.

    Raises:
        EngineUnavailable: no socket, nobody listening, or no place in its queue for two seconds.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        await _connect(connection, path)
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_READ_BYTES)
    except OSError as error:
        connection.close()
        raise EngineUnavailable(str(error)) from error
    return UpstreamExchange(reader, writer)


def listening(path: Path) -> bool:
    """Whether something accepts connections on the socket just now (a full queue counts as yes)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


async def _connect(connection: socket.socket, path: Path) -> None:
    # Connecting a unix socket never takes time; it only fails with EAGAIN when the listen queue is full, which
    # asyncio's own connect would take for "in progress".
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _BACKLOG_PATIENCE
    while True:
        try:
            connection.connect(str(path))
            return
        except BlockingIOError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.01)
