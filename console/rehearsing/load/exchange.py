"""One request on a connection of its own, and its answer noted as it comes in.

A protocol without tasks and layers in between: the generator shares its cores with the engine that it measures, and
takes less than half of what httpx takes for the same streams (`tests/benchmarks/bench_load.py`). Each moment is that at
which the bytes came in.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from typing import Final

import h11

from console.rehearsing.load.answer import Answer
from console.rehearsing.load.target import Target

CONNECT_SECONDS: Final = 30.0
"""Patient: a server that does not accept for a while is to show as latency."""
_OWN_LIMITS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})


async def exchange(where: Target, request: Sequence[h11.Event], answer: Answer, clock: Callable[[], float]) -> None:
    """Send a request and note its answer. Errors are in `answer`; cancelled, the connection is closed at once."""
    protocol = _Exchange(request, answer, clock)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await _connect(where, protocol)
    except TimeoutError:
        answer.fail("unreachable", f"no connection within {CONNECT_SECONDS:.0f} s")
    except OSError as error:
        kind = "own limit" if error.errno in _OWN_LIMITS else "unreachable"
        answer.fail(kind, os.strerror(error.errno) if error.errno else str(error))
    else:
        await protocol.over
    finally:
        protocol.close()


async def _connect(where: Target, protocol: _Exchange) -> None:
    """To the first address that accepts. Raises OSError."""
    loop = asyncio.get_running_loop()
    for left, address in enumerate(where.addresses, 1 - len(where.addresses)):
        try:
            await loop.create_connection(lambda: protocol, address, where.port)
            return
        except OSError:
            if left == 0:
                raise


class _Exchange(asyncio.Protocol):
    """`over`: done when nothing more comes that matters."""

    def __init__(self, request: Sequence[h11.Event], answer: Answer, clock: Callable[[], float]) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._answer = answer
        self._clock = clock
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=256 * 1024)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(b"".join(self._http.send(event) or b"" for event in self._request))

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            self._take(b"")  # the end of the body, where nothing else says where it is
        self._lost(str(error or "closed before the answer was complete"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self, data: bytes) -> None:
        if self.over.done():
            return
        moment = self._clock()
        try:
            self._http.receive_data(data)
            while not self._answer.over and (event := self._http.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    self._answer.begin(event.status_code)
                elif isinstance(event, h11.Data):
                    self._answer.take(bytes(event.data), moment)
                elif isinstance(event, h11.EndOfMessage):
                    self._answer.end()
                    return self._finish()
                elif isinstance(event, h11.ConnectionClosed):
                    return self._lost("closed before the answer began")
        except h11.RemoteProtocolError as error:
            return self._lost(str(error))
        if self._answer.over:
            self._finish()

    def _lost(self, detail: str) -> None:
        self._answer.lost(detail)
        self._finish()

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
