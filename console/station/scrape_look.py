"""One look at the /metrics of a vLLM: what it counts, or in one line why that could not be had."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Collection, Sequence
from typing import Final

import httpx

from console.station.scrape_address import Address
from store.imports.errors import ImportFailed
from store.imports.observations import CounterSample
from store.imports.prometheus import parse_exposition

TIMEOUT_SECONDS: Final = 5.0
"""For the whole answer, however it drips."""
MAX_BYTES: Final = 16 << 20
MAX_ENGINES: Final = 64
NAME_LIMIT: Final = 512
"""Characters in the name of an engine or model: both become labels and keys."""


class ScrapeFailed(Exception):
    """One look brought nothing: place and reason in one line."""


def asking(address: Address) -> httpx.AsyncClient:
    """A connection for each look: one kept open would fail once after every restart of the server. No proxies: what
    is observed is near, and an address on this machine must not go through one."""
    secure = address.url.scheme == "https"
    return httpx.AsyncClient(
        auth=address.auth,
        headers={"Accept": "text/plain", "Accept-Encoding": "identity", "User-Agent": "specdeck"},
        limits=httpx.Limits(max_keepalive_connections=0),
        timeout=None,
        trust_env=False,
        verify=httpx.create_ssl_context() if secure else False,  # heeds SSL_CERT_FILE
    )


async def look(client: httpx.AsyncClient, address: Address, known: Collection[str]) -> Sequence[CounterSample]:
    """A sample of each engine, at least one; `known` are the engines of earlier looks, which count to their limit.

    Raises:
        ScrapeFailed: nothing was read.
    """
    body = await _fetch(client, address)
    try:
        samples = await asyncio.to_thread(parse_exposition, body, address.shown, time.time())
    except ImportFailed as error:
        raise ScrapeFailed(str(error)) from error
    engines = len({*known, *(sample.engine for sample in samples)})
    if engines > MAX_ENGINES:
        raise ScrapeFailed(f"{address.shown}: {engines} engines: at most {MAX_ENGINES} of one server are observed")
    longest = max(max(len(sample.engine), len(sample.model or "")) for sample in samples)
    if longest > NAME_LIMIT:
        raise ScrapeFailed(f"{address.shown}: an engine or model with a name of {longest} characters")
    return samples


async def _fetch(client: httpx.AsyncClient, address: Address) -> bytes:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), client.stream("GET", address.url) as response:
            if response.status_code != httpx.codes.OK:
                raise ScrapeFailed(f"{address.shown}: {_refusal(response.status_code)}")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise ScrapeFailed(f"{address.shown}: the answer is larger than {MAX_BYTES:,} bytes")
            return bytes(body)
    except TimeoutError as error:
        raise ScrapeFailed(f"{address.shown}: no whole answer within {TIMEOUT_SECONDS:g} s") from error
    except httpx.HTTPError as error:
        raise ScrapeFailed(f"{address.shown}: {_reason(error)}") from error


def _refusal(status: int) -> str:
    """An answer that is no 200, with what to do about it."""
    answer = f"answers {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return f"{answer}: put user and password into the address, as in http://user:password@host/metrics"
    if httpx.codes.is_redirect(status):
        return f"{answer}: give the address that it redirects to"
    return f"{answer}: give the address under which vLLM serves its /metrics"


def _reason(error: BaseException) -> str:
    """What the system said, from under the layers that wrap it; else the error's own first line."""
    said = None
    layer: BaseException | None = error
    while layer is not None:
        if isinstance(layer, OSError) and layer.strerror:
            own_text = isinstance(layer, ssl.SSLError | socket.gaierror) or not layer.errno
            said = layer.strerror if own_text else os.strerror(layer.errno or 0)
        layer = layer.exceptions[-1] if isinstance(layer, BaseExceptionGroup) else layer.__cause__ or layer.__context__
    text = said or next(iter(str(error).splitlines()), "") or type(error).__name__
    return f"can't be read: {text[:200]}"
