"""Headers across a proxy: hop-by-hop ones stay on their connection (RFC 9110 §7.6.1), the rest pass unchanged."""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection",
     b"te", b"trailer", b"transfer-encoding", b"upgrade")
)  # fmt: skip

# `Connection` may name further headers as hop-by-hop, but a client must not be able to strip these from its request.
_NEVER_DROPPED = frozenset((b"host", b"content-length", b"content-type", b"authorization"))


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers that belong to the message, in order; names in lower case as ASGI and h11 give them."""
    headers = list(headers)
    dropped = _HOP_BY_HOP | (_named_by_connection(headers) - _NEVER_DROPPED)
    return [(name, value) for name, value in headers if name not in dropped]


def upstream_request_headers(headers: Iterable[tuple[bytes, bytes]], *, key_was_ours: bool) -> Headers:
    """Headers for the engine: one connection a request, framing as the client chose it.

    `Expect` is answered by the server side here. An `Authorization` that held the gateway's own key stops here.
    """
    headers = list(headers)
    passed = [
        (name, value)
        for name, value in end_to_end(headers)
        if name != b"expect" and not (key_was_ours and name == b"authorization")
    ]
    if first(headers, b"transfer-encoding") is not None:
        passed = [(name, value) for name, value in passed if name != b"content-length"]
        passed.append((b"transfer-encoding", b"chunked"))
    passed.append((b"connection", b"close"))
    return passed


def with_length(headers: Headers, size: int) -> Headers:
    """The headers of a message whose body has `size` bytes now; a body sent in chunks declares none."""
    return [(name, b"%d" % size if name == b"content-length" else value) for name, value in headers]


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """The first value of `name` (lower case), None when absent."""
    for candidate, value in headers:
        if candidate == name:
            return value
    return None


def content_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The declared body size in bytes; None when absent or not a number."""
    value = first(headers, b"content-length")
    return int(value) if value is not None and value.isdigit() else None


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    return frozenset(
        token.strip().lower()
        for name, value in headers
        if name == b"connection"
        for token in value.split(b",")
        if token.strip()
    )
