"""Who may see the console in a browser: pure questions about a request's token, cookie, Host and Origin."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from urllib.parse import urlsplit

import msgspec


def new_token() -> str:
    """256 bits: nobody guesses it."""
    return secrets.token_urlsafe(32)


class Access(msgspec.Struct, frozen=True):
    """`token`: what a browser must bring once, None where none is asked for. `names`: under which the server may be
    reached beside `localhost` and addresses."""

    token: str | None
    names: frozenset[str] = frozenset()
    cookie: str = "specdeck_web"
    """The cookie's name: one for each port, since browsers keep cookies by host alone."""
    proof: str = msgspec.field(default_factory=new_token)
    """The cookie's value, another with each start: the token itself is kept in no browser."""

    def knows_host(self, host: str) -> bool:
        """Whether a Host header names this server. A name that is not ours may be a stranger's, pointed here to get
        round the browser's same-origin rule (DNS rebinding); an address can't be."""
        name = _hostname(host)
        if name is None:
            return False
        return name == "localhost" or name.endswith(".localhost") or name in self.names or _is_address(name)

    def same_origin(self, origin: str | None, host: str) -> bool:
        """Whether a page of this server asks. Browsers name the Origin with every WebSocket; nobody else need come."""
        if not origin:
            return False
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def right_token(self, given: str) -> bool:
        """In constant time. Where no token is asked for, any is right."""
        return self.token is None or _same(given, self.token)

    def has_proof(self, cookie: str | None) -> bool:
        """Whether the cookie says that the token was right before. In constant time."""
        return self.token is None or _same(cookie or "", self.proof)


def _same(given: str, secret: str) -> bool:
    """A header may hold bytes that are no UTF-8; they come as surrogates."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), secret.encode())


def _hostname(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises where it is none
    except ValueError:
        return None
    return parts.hostname.rstrip(".") if parts.hostname and parts.netloc == host and "@" not in host else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
