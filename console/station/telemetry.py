"""The station's end of the telemetry socket: takes what engines push, decodes it, counts what is no frame."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import zmq
import zmq.asyncio

from engine.frames import Announcement, Frame, WireError, decode
from engine.sockets import Sockets, ipc

log = logging.getLogger(__name__)

QUEUE_MESSAGES: Final = 20_000
MAX_MESSAGE_BYTES: Final = 64 << 20
_GATHER_SECONDS: Final = 0.05
_BURST: Final = 500
"""Messages taken between two looks at everything else: 10,000 a second."""
_LOGGED_OF: Final = 100
"""Of broken messages the first and then every so many-th is logged: a broken sender must not fill the disk."""


class TelemetryReceiver:
    """Binds PULL and hands each message on, on the event loop. Decoding leaves the columns packed: microseconds."""

    def __init__(
        self,
        context: zmq.asyncio.Context,
        sockets: Sockets,
        take: Callable[[Frame | Announcement], None],
        broken: Callable[[str], None],
    ) -> None:
        self._take = take
        self._broken = broken
        self._broken_count = 0
        self._socket = context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, QUEUE_MESSAGES)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self._socket.bind(ipc(sockets.telemetry))

    async def receive(self) -> None:
        """For ever."""
        while True:
            self._handle(await self._socket.recv_multipart())
            # Whatever else has come by then is taken in one go: to wake for every step would cost the engine's cores.
            await asyncio.sleep(_GATHER_SECONDS)
            for _ in range(_BURST):
                if not await self._socket.poll(0):
                    break
                self._handle(await self._socket.recv_multipart())

    def close(self) -> None:
        self._socket.close()

    def _handle(self, parts: list[bytes]) -> None:
        try:
            if len(parts) != 1:
                raise WireError(f"telemetry message of {len(parts)} parts, one expected")
            message = decode(parts[0])
        except WireError as error:
            if self._broken_count % _LOGGED_OF == 0:
                log.warning("%s", error)
            self._broken_count += 1
            self._broken(str(error))
            return
        self._take(message)
