"""Which /metrics to observe, and how often, as an operator gives it."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

import httpx

from console.station.http_address import BadAddress, read_http_address

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
    try:
        url, auth = read_http_address(text)
    except BadAddress as error:
        raise BadSetting(f"the address {error}: give one like http://127.0.0.1:8000/metrics") from error
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
