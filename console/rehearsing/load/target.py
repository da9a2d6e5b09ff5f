"""Where requests go: an OpenAI-compatible base URL, taken apart. Plain HTTP, as the public port speaks it."""

from __future__ import annotations

import asyncio
import socket
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_PORT: Final = 80


class Target(NamedTuple):
    """`addresses`: of the host, so that no request waits for a name to be looked up."""

    host: str
    port: int
    authority: str
    path: str
    addresses: tuple[str, ...] = ()


def with_version(base_url: str) -> str:
    """`base_url` with `/v1` behind it, unless it has a path already."""
    return base_url if urlsplit(base_url).path.strip("/") else base_url.rstrip("/") + "/v1"


def target(base_url: str) -> Target:
    """`base_url` with or without its version. Raises ValueError: not such a URL."""
    try:
        url = urlsplit(with_version(base_url))
        port = url.port
    except ValueError as error:
        raise ValueError(f"{base_url!r}: {error}") from None
    if url.scheme != "http" or not url.hostname:
        raise ValueError(f"{base_url!r}: expected a URL such as http://127.0.0.1:8000/v1")
    authority = url.netloc.rpartition("@")[2]
    path = f"{url.path.rstrip('/')}/chat/completions"
    return Target(url.hostname, port or _PORT, authority, path)


async def resolved(where: Target) -> Target:
    """With the addresses of its host.

    Raises:
        ValueError: the name is not known.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"{where.host}: {error.strerror or error}") from None
    return where._replace(addresses=tuple(dict.fromkeys(str(place[0]) for *_, place in found)))
