"""The gateway as an ASGI application: reads what a request says about itself, chooses its engine, and passes it on."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from console.gateway import failures
from console.gateway.answer import send_failure
from console.gateway.api_key import authorized
from console.gateway.asgi import Receive, Scope, Send, target
from console.gateway.counts import Counts
from console.gateway.failures import Failure, Refusal
from console.gateway.headers import Headers, content_length, upstream_request_headers, with_length
from console.gateway.hints import said_in_headers
from console.gateway.lanes import Lanes
from console.gateway.plan import Plan, Vanilla, plan, readable
from console.gateway.relay import ClientLeft, Relay, read_whole
from console.gateway.texts import TextKeeper
from console.gateway.upstream import EngineUnavailable, UpstreamExchange, connect

LANE_MARK: Final = (b"x-specdeck-lane", b"vanilla")
"""On answers of the engine without speculation, which a client could not tell from the others."""


class Engines(NamedTuple):
    """The unix sockets of the engines. `speculation`: the first of them drafts."""

    main: Path
    vanilla: Path | None = None
    speculation: bool = True


class Proxy:
    """ASGI application that passes every request on to one of the engines."""

    def __init__(self, engines: Engines, *, api_key: bytes | None = None, max_body: int = 64 * 1024 * 1024) -> None:
        self.engines = engines
        self.lanes = Lanes()
        self.counts = Counts()
        self.texts = TextKeeper()
        self._api_key = api_key
        self._max_body = max_body
        self._relays: set[Relay] = set()
        self._stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.counts.requests += 1
        self.counts.active += 1
        try:
            self._check(scope)
            await self._serve(scope, receive, send)
        except Refusal as refusal:
            self.counts.add(*refusal.counts)
            await send_failure(refusal.failure, send)
        except ClientLeft:
            self.counts.add("cancelled")
        finally:
            self.counts.active -= 1

    def cut_all(self) -> None:
        """End every exchange, those still to begin included, telling the clients that the gateway is stopping."""
        self._stopping = True
        for relay in list(self._relays):
            relay.cut(failures.SHUTTING_DOWN)

    def _check(self, scope: Scope) -> None:
        headers: Headers = scope["headers"]
        # A load balancer has no key, and liveness tells nothing.
        if self._api_key is not None and scope["path"] != "/health":
            keys = [value for name, value in headers if name == b"authorization"]
            if len(keys) != 1 or not authorized(keys[0], self._api_key):
                raise Refusal(failures.WRONG_KEY, "refused")
        if (content_length(headers) or 0) > self._max_body:
            raise Refusal(failures.body_too_large(self._max_body), "refused")

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = upstream_request_headers(scope["headers"], key_was_ours=self._api_key is not None)
        decided: Plan | None = None
        if readable(scope["method"], scope["path"], scope["headers"]):
            decided = await self._decide(scope, receive)
            headers = with_length(headers, len(decided.body))
        elif scope["method"] == "POST":
            self.counts.hints_lost += said_in_headers(scope["headers"])
        upstream, vanilla = await self._connect(decided.vanilla if decided else None)
        tap = self.texts.tap(scope["path"], decided.body, vanilla=vanilla) if decided and self.texts.wanted else None
        marks = [LANE_MARK] if vanilla else []
        relay = Relay(upstream, self.counts, max_body=self._max_body, marks=marks, tap=tap)
        self._relays.add(relay)
        if self._stopping:
            relay.cut(failures.SHUTTING_DOWN)
        try:
            whole = decided.body if decided else None
            await relay.run(scope["method"], target(scope), headers, whole, receive, send)
        finally:
            self._relays.discard(relay)

    async def _decide(self, scope: Scope, receive: Receive) -> Plan:
        decided = plan(
            scope["path"],
            scope["headers"],
            await read_whole(receive, self._max_body),
            self.lanes,
            vanilla_engine=self.engines.vanilla is not None,
            speculation=self.engines.speculation,
        )
        self.counts.tags_put += decided.tag_put
        self.counts.hints_seen += decided.hinted
        self.counts.hints_lost += decided.lost
        return decided

    async def _connect(self, vanilla: Vanilla | None) -> tuple[UpstreamExchange, bool]:
        """A connection for one request, and whether it is to the engine without speculation.

        Raises:
            Refusal: no engine that could answer it is there.
        """
        if vanilla is None or self.engines.vanilla is None:
            return await _connected(self.engines.main, failures.ENGINE_UNAVAILABLE), False
        if vanilla == "parameters":
            upstream = await _connected(self.engines.vanilla, failures.VANILLA_UNAVAILABLE)
            self.counts.vanilla_by_parameters += 1
            return upstream, True
        try:
            upstream = await connect(self.engines.vanilla)
        except EngineUnavailable:
            # Lane and hint are K = 0 in the other engine, and so is the policy that it executes.
            upstream = await _connected(self.engines.main, failures.ENGINE_UNAVAILABLE)
            self.counts.vanilla_spilled += 1
            return upstream, False
        if vanilla == "hint":
            self.counts.vanilla_by_hint += 1
        else:
            self.counts.vanilla_by_lane += 1
        return upstream, True


async def _connected(path: Path, otherwise: Failure) -> UpstreamExchange:
    try:
        return await connect(path)
    except EngineUnavailable as error:
        raise Refusal(otherwise, "unavailable") from error
