"""What the gateway counts about itself."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Requests since this gateway started; each ends as answered or as exactly one of the others."""

    requests: int = 0
    active: int = 0
    errors: int = 0
    """Answered with a status of 500 or above, by the engine or by the gateway, or cut inside the answer."""
    unavailable: int = 0
    """503: there was no engine to take it, as while one starts. The client was told when to come again."""
    refused: int = 0
    """The gateway's own 4xx: wrong key, too large, not HTTP."""
    cancelled: int = 0
    """The client left before its answer was complete; the engine was told."""
