"""Which /metrics to observe, and how often, as an operator gives it."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

import httpx

SCRAPE_SECONDS: Final = 10.0


class BadSetting(ValueError):
    """What an operator gave can't be meant: says why. Never holds an address: there may be a password in it."""


class Address(NamedTuple):
    """Where to ask. `shown` is what may be seen and stored: without credentials and query."""

    url: httpx.URL
    auth: httpx.BasicAuth | None
    shown: str


def read_address(text: str) -> Address:
    """The address to scrape; `/metrics` where no path is given.

    Raises:
        BadSetting: it is none that can be asked over HTTP.
    """
    example = "give one like http://127.0.0.1:8000/metrics"
    try:
        given = httpx.URL(text.strip())
        url = given.copy_with(username=None, password=None, fragment=None)
    except (httpx.InvalidURL, ValueError) as error:
        escaped = "/ ? # @ and : in a user or password are written %2F %3F %23 %40 %3A"
        raise BadSetting(f"the address can't be read: {example}; {escaped}") from error
    if url.scheme not in ("http", "https"):
        raise BadSetting(f"the address must begin with http:// or https://: {example}")
    if not url.raw_host:
        raise BadSetting(f"the address names no host: {example}")
    if url.port is not None and not 0 < url.port < 65536:
        raise BadSetting(f"the address has a port that can't be: {example}")
    auth = httpx.BasicAuth(given.username, given.password) if given.userinfo else None
    if url.path == "/":
        url = url.copy_with(path="/metrics")
    return Address(url, auth, str(url.copy_with(query=None)))


def scrape_seconds() -> float:
    """Seconds from look to look: SPECDECK_SCRAPE_SECONDS, else `SCRAPE_SECONDS`.

    Raises:
        BadSetting: not a number from 0.1 to 60.
    """
    text = os.environ.get("SPECDECK_SCRAPE_SECONDS")
    if not text:
        return SCRAPE_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 60:
        raise BadSetting(f"SPECDECK_SCRAPE_SECONDS={text[:20]!r}: give seconds from 0.1 to 60")
    return seconds
