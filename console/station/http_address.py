"""An address to be asked over HTTP, as an operator gives it: what may be secret in it is in no error."""

from __future__ import annotations

from typing import NamedTuple

import httpx


class BadAddress(ValueError):
    """Says what is wrong with it. Never holds it: there may be a password in it."""


class HttpAddress(NamedTuple):
    """`url` without credentials and fragment."""

    url: httpx.URL
    auth: httpx.BasicAuth | None


def read_http_address(text: str) -> HttpAddress:
    """Raises BadAddress: it is none that can be asked over HTTP."""
    try:
        given = httpx.URL(text.strip())
        url = given.copy_with(username=None, password=None, fragment=None)
    except (httpx.InvalidURL, ValueError) as error:
        escaped = "/ ? # @ and : in a user or password are written %2F %3F %23 %40 %3A"
        raise BadAddress(f"can't be read; {escaped}") from error
    if url.scheme not in ("http", "https"):
        raise BadAddress("must begin with http:// or https://")
    if not url.raw_host:
        raise BadAddress("names no host")
    if url.port is not None and not 0 < url.port < 65536:
        raise BadAddress("has a port that can't be")
    return HttpAddress(url, httpx.BasicAuth(given.username, given.password) if given.userinfo else None)
