"""Rules for IP addresses. One that says nothing (loopback, "all interfaces") stays, as does what only looks so."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from store.redact.rule import ADDRESS, rule


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _tells(text: str) -> bool:
    """Whether `text` is an address, and one that tells a machine from others."""
    bare = text.partition("%")[0]
    if "." in bare and ":" not in bare:  # Python refuses the leading zeros that others print
        bare = ".".join(part.lstrip("0") or "0" for part in bare.split("."))
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None) or address
    return not (inner.is_loopback or inner.is_unspecified)


def _address(found: re.Match[str]) -> str:
    """Colons at its ends may be no part of it."""
    text = found[0]
    for start, end in ((0, 0), (0, 1), (1, 0), (1, 1)):
        inner = text[start : len(text) - end]
        if text[:start] + text[len(text) - end :] in ("", ":", "::") and _tells(inner):
            return text[:start] + ADDRESS + text[len(text) - end :]
    return text


ADDRESSES: Final = (
    rule(r"(?<!\w)(?=[0-9a-f]{0,45}:[0-9a-f]{0,45}:)[0-9a-f:]{2,45}(?:(?:\.\d{1,3}){3})?(?:%[\w.-]+)?(?!\w)", _address),
    rule(r"(?<!\d)(?:\d{1,3}\.){3}\d{1,3}(?!\d)", _address),
    rule(r"(?<!\w)ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]+)?", ADDRESS),
)
