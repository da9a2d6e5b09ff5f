"""One exchange of a client with an engine: one task relays the response, one sends the body and watches the client."""

from __future__ import annotations

import asyncio
from typing import Final

from console.gateway import failures
from console.gateway.answer import Answer
from console.gateway.asgi import Receive, Send
from console.gateway.counts import Counts
from console.gateway.failures import Failure, Refusal
from console.gateway.headers import Headers, end_to_end
from console.gateway.text_tap import TextTap
from console.gateway.upstream import EngineGarbled, EngineLost, UnsendableRequest, UpstreamExchange

_CLIENT_LEFT: Final = "the client left before the answer was complete"
_ENGINE_LEFT: Final = "the engine's answer broke off"


class ClientLeft(ConnectionError):
    """The client closed its connection before it had sent its request."""


async def read_whole(receive: Receive, limit: int) -> bytes:
    """The request's body.

    Raises:
        ClientLeft: it won't be complete.
        Refusal: it has more than `limit` bytes.
    """
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > limit:
            raise Refusal(failures.body_too_large(limit), "refused")
        if not message.get("more_body", False):
            return b"".join(pieces)


class Relay:
    """One exchange; `marks` are headers that its answer gets beside the engine's own, `tap` sees the answer go by."""

    def __init__(
        self, upstream: UpstreamExchange, counts: Counts, *, max_body: int, marks: Headers, tap: TextTap | None = None
    ) -> None:
        self._tap = tap
        self._upstream = upstream
        self._counts = counts
        self._max_body = max_body
        self._marks = marks
        self._ended: Failure | None = None
        """Why the gateway cut the exchange, when it did."""
        self._client_gone = False

    async def run(
        self, method: str, target: bytes, headers: Headers, whole: bytes | None, receive: Receive, send: Send
    ) -> None:
        """From the request's head to the end of the answer. `whole` is the body, None where it comes in pieces."""
        sender: asyncio.Task[None] | None = None
        try:
            await self._upstream.send_head(method, target, headers)
            sender = asyncio.create_task(self._send_request(whole, receive))
            await self._relay_response(send)
        except UnsendableRequest as error:
            raise Refusal(failures.NOT_FORWARDABLE, "refused") from error
        finally:
            self._upstream.abort()
            if sender is not None:
                sender.cancel()
            if self._tap is not None:
                self._tap.lost(_CLIENT_LEFT if self._client_gone else _ENGINE_LEFT)  # nothing new after a whole answer

    def cut(self, why: Failure) -> None:
        """End it now, telling the client why."""
        self._ended = why
        self._upstream.abort()

    async def _send_request(self, whole: bytes | None, receive: Receive) -> None:
        """Send the body on, as it comes where it comes in pieces, then wait for the client to leave too early."""
        if whole is not None:
            await self._upstream.send_body(whole)
            await self._upstream.end_body()
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._client_gone = True
                self._upstream.abort()
                return
            body = message.get("body", b"")
            size += len(body)
            if size > self._max_body:
                self.cut(failures.body_too_large(self._max_body))
                return
            await self._upstream.send_body(body)
            if not message.get("more_body", False):
                await self._upstream.end_body()

    async def _relay_response(self, send: Send) -> None:
        answer = Answer(send)
        try:
            status, headers = await self._upstream.response_head()
            if self._tap is not None:
                self._tap.begin(status, headers)
            await answer.begin(status, [*end_to_end(headers), *self._marks])
            while (piece := await self._upstream.response_body()) is not None:
                if self._tap is not None:
                    self._tap.take(piece)
                await answer.body(piece)
            if self._ended is not None:
                raise EngineLost("cut")  # a body that ends with its connection looks complete when we close it
            if self._tap is not None:
                self._tap.end()
            await answer.end()
            self._counts.errors += status >= 500
        except (EngineLost, EngineGarbled) as error:
            if self._client_gone:
                self._counts.cancelled += 1
                return
            lost = failures.ENGINE_LOST if isinstance(error, EngineLost) else failures.ENGINE_GARBLED
            why = self._ended or lost
            self._counts.errors += why.status >= 500
            self._counts.refused += why.status < 500
            await answer.fail(why)
