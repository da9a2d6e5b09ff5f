"""The certificate of a drill: what was forced, on which requests, and what the rows show."""

from __future__ import annotations

from typing import Literal

import msgspec

WayName = Literal[
    "hint-header", "hint-body", "hint-xargs", "lane", "cap", "operator-fallback", "mode-off", "back",
]  # fmt: skip
"""`back` is no way out: it is that afterwards speculation is there again."""


class CertifiedEngine(msgspec.Struct, frozen=True):
    """`model_version` as buckets have it."""

    engine: str
    model_version: str
    boot: str
    vllm: str


class WayResult(msgspec.Struct, frozen=True, kw_only=True):
    """One way out, forced on requests of the drill's own."""

    way: WayName
    passed: bool
    requests: list[str] = []
    """Ids as the client was answered with, the forced one first; then the one that ran beside it untouched."""
    rows: int = 0
    """Decode rows of the forced request."""
    drafted: int = 0
    """Tokens drafted for it."""
    limits: dict[str, int] = {}
    """Its decode rows by the policy term that set their K."""
    text: str
    """One sentence."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """`ts`: Unix seconds at the end of the drill; `station`: its id; `specdeck`: version."""

    ts: float
    station: str
    engines: list[CertifiedEngine]
    ways: list[WayResult]
    passed: bool
    specdeck: str
