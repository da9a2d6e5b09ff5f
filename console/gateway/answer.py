"""The response as the client sees it: streamed at once, but for a short JSON body, which is held until whole."""

from __future__ import annotations

from typing import Final

from console.gateway.asgi import Send
from console.gateway.failures import Failure
from console.gateway.headers import Headers, content_length, first

_HELD_JSON_BYTES: Final = 4 * 1024 * 1024
"""A JSON answer up to this size is passed on when it is whole, so that losing the engine in it can still be a 502."""


class Answer:
    """One response on its way; `fail` tells the client of a failure wherever that still can be told."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[bytes] | None = None
        self._head: tuple[int, Headers] | None = None
        self._started = False
        self._events = False
        self._tail = b""

    async def begin(self, status: int, headers: Headers) -> None:
        kind = (first(headers, b"content-type") or b"").lower()
        size = content_length(headers)
        self._events = kind.startswith(b"text/event-stream")
        self._head = (status, headers)
        if kind.startswith(b"application/json") and size is not None and size <= _HELD_JSON_BYTES:
            self._held = []
        else:
            await self._start()

    async def body(self, piece: bytes) -> None:
        if self._held is not None:
            self._held.append(piece)
            return
        if self._events:
            self._tail = piece[-4:]
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        body = b""
        if self._held is not None:
            body = b"".join(self._held)
            await self._start()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def fail(self, why: Failure) -> None:
        """Tell the client: a whole error answer when nothing was sent yet, an event in a stream of events.

        Inside any other body there is no place to say it: the connection is closed short of the promised end.
        """
        if not self._started:
            await send_failure(why, self._send)
        elif self._events:
            event = why.event(self._tail)
            await self._send({"type": "http.response.body", "body": event, "more_body": False})
        else:
            raise BodyCutShort(why.message)

    async def _start(self) -> None:
        assert self._head is not None
        status, headers = self._head
        self._started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


class BodyCutShort(ConnectionError):
    """Raised to the server, which then drops the client's connection: the only honest end of half a body."""


async def send_failure(failure: Failure, send: Send) -> None:
    """A whole answer of the gateway's own."""
    await send({"type": "http.response.start", "status": failure.status, "headers": failure.response_headers})
    await send({"type": "http.response.body", "body": failure.json, "more_body": False})
