"""What the judge knows, as it is kept: plain values as JSON, compressed."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import zstandard

_LEVEL: Final = 1


def pack(state: dict[str, Any]) -> bytes:
    """Arrays of zeros and of small numbers for the most part: little of it is left."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(msgspec.json.encode(state))


def unpack(kept: bytes) -> dict[str, Any]:
    """The inverse of `pack`.

    Raises:
        ValueError, zstandard.ZstdError: it is none.
    """
    plain: dict[str, Any] = msgspec.json.decode(zstandard.ZstdDecompressor().decompress(kept))
    return plain
