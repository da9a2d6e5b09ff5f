"""Where alerts are posted to, as an operator gives it. What follows the host may be a secret, and is never shown."""

from __future__ import annotations

import ipaddress
from typing import Any, Final, NamedTuple

import httpx

from console.station.http_address import BadAddress, read_http_address

_EXAMPLE: Final = "give one like https://alerts.example.org/hook"


class BadWebhook(ValueError):
    """What was given can't be meant: says why, and never holds it."""


class WebhookAddress(NamedTuple):
    """`shown`: all that may be seen of it."""

    url: httpx.URL
    auth: httpx.BasicAuth | None
    shown: str

    @property
    def is_near(self) -> bool:
        """On this machine: asked without a proxy."""
        host = self.url.host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def read_webhook(text: Any) -> WebhookAddress:
    """Raises BadWebhook: it is no address that can be posted to."""
    if not isinstance(text, str):
        raise BadWebhook(f"the address must be a text: {_EXAMPLE}")
    try:
        url, auth = read_http_address(text)
    except BadAddress as error:
        raise BadWebhook(f"the address {error}: {_EXAMPLE}") from error
    host = f"[{url.host}]" if ":" in url.host else url.host
    shown = f"{url.scheme}://{host}{'' if url.port is None else f':{url.port}'}"
    return WebhookAddress(url, auth, shown if url.raw_path in (b"", b"/") else f"{shown}/…")


def secret_parts(text: str) -> list[str]:
    """What of an address must not be told anywhere: all of it, what follows its host, and its password."""
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        return [text]
    path = url.raw_path.decode("ascii", "replace")
    parts = [text.strip(), path, path.partition("?")[0], url.password, url.query.decode("ascii", "replace")]
    return [part for part in dict.fromkeys(parts) if len(part) >= _SHORTEST]


_SHORTEST: Final = 6
"""Characters; what is shorter is no secret, and occurs in other words."""
