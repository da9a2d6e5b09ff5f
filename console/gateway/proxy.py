"""The pass-through as an ASGI application: one task relays the response, one sends the body and watches the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from console.gateway import failures
from console.gateway.api_key import authorized
from console.gateway.counts import Counts
from console.gateway.failures import Failure
from console.gateway.headers import Headers, content_length, end_to_end, first, upstream_request_headers
from console.gateway.upstream import (
    EngineGarbled,
    EngineLost,
    EngineUnavailable,
    UnsendableRequest,
    UpstreamExchange,
    connect,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_HELD_JSON_BYTES = 4 * 1024 * 1024
"""A JSON answer up to this size is passed on when it is whole, so that losing the engine in it can still be a 502."""


class _Relay:
    """The state of one request between its two tasks."""

    def __init__(self, upstream: UpstreamExchange) -> None:
        self.upstream = upstream
        self.ended: Failure | None = None
        """Why the gateway cut the exchange, when it did."""
        self.client_gone = False

    def cut(self, why: Failure) -> None:
        self.ended = why
        self.upstream.abort()


class Proxy:
    """ASGI application that passes every request to the engine behind `upstream` (a unix socket path)."""

    def __init__(self, upstream: Path, *, api_key: bytes | None = None, max_body: int = 64 * 1024 * 1024) -> None:
        self.upstream = upstream
        self.counts = Counts()
        self._api_key = api_key
        self._max_body = max_body
        self._relays: set[_Relay] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.counts.requests += 1
        self.counts.active += 1
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                self.counts.refused += 1
                await _answer(refusal, send)
            else:
                await self._pass_on(scope, receive, send)
        finally:
            self.counts.active -= 1

    def cut_all(self) -> None:
        """End every exchange in progress, telling its client that the gateway is stopping."""
        for relay in list(self._relays):
            relay.cut(failures.SHUTTING_DOWN)

    def _refusal(self, scope: Scope) -> Failure | None:
        headers: Headers = scope["headers"]
        # A load balancer has no key, and liveness tells nothing.
        if self._api_key is not None and scope["path"] != "/health":
            keys = [value for name, value in headers if name == b"authorization"]
            if len(keys) != 1 or not authorized(keys[0], self._api_key):
                return failures.WRONG_KEY
        if (content_length(headers) or 0) > self._max_body:
            return failures.body_too_large(self._max_body)
        return None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            upstream = await connect(self.upstream)
        except EngineUnavailable:
            self.counts.unavailable += 1
            await _answer(failures.ENGINE_UNAVAILABLE, send)
            return
        relay = _Relay(upstream)
        self._relays.add(relay)
        sender: asyncio.Task[None] | None = None
        try:
            await upstream.send_head(scope["method"], _target(scope), self._headers_for_engine(scope))
            sender = asyncio.create_task(self._send_request(relay, receive))
            await self._relay_response(relay, send)
        except UnsendableRequest:
            self.counts.refused += 1
            await _answer(failures.NOT_FORWARDABLE, send)
        finally:
            self._relays.discard(relay)
            upstream.abort()
            if sender is not None:
                sender.cancel()

    def _headers_for_engine(self, scope: Scope) -> Headers:
        return upstream_request_headers(scope["headers"], key_was_ours=self._api_key is not None)

    async def _send_request(self, relay: _Relay, receive: Receive) -> None:
        """Send the body on as it comes, then wait for the client to leave before its answer is complete."""
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                relay.client_gone = True
                relay.upstream.abort()
                return
            body = message.get("body", b"")
            size += len(body)
            if size > self._max_body:
                relay.cut(failures.body_too_large(self._max_body))
                return
            await relay.upstream.send_body(body)
            if not message.get("more_body", False):
                await relay.upstream.end_body()

    async def _relay_response(self, relay: _Relay, send: Send) -> None:
        answer = _Answer(send)
        try:
            status, headers = await relay.upstream.response_head()
            await answer.begin(status, end_to_end(headers))
            while (piece := await relay.upstream.response_body()) is not None:
                await answer.body(piece)
            if relay.ended is not None:
                raise EngineLost("cut")  # a body that ends with its connection looks complete when we close it
            await answer.end()
            self.counts.errors += status >= 500
        except (EngineLost, EngineGarbled) as error:
            if relay.client_gone:
                self.counts.cancelled += 1
                return
            lost = failures.ENGINE_LOST if isinstance(error, EngineLost) else failures.ENGINE_GARBLED
            why = relay.ended or lost
            self.counts.errors += why.status >= 500
            self.counts.refused += why.status < 500
            await answer.fail(why)


class _Answer:
    """The response as the client sees it: streamed at once, but for a short JSON body, which is held until whole."""

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
            await _answer(why, self._send)
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


async def _answer(failure: Failure, send: Send) -> None:
    await send({"type": "http.response.start", "status": failure.status, "headers": failure.response_headers})
    await send({"type": "http.response.body", "body": failure.json, "more_body": False})


def _target(scope: Scope) -> bytes:
    """The request target as the client wrote it, undecoded."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    return path + b"?" + query if query else path
