"""What the gateway counts about itself."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Requests since this gateway started; each ends in exactly one of answered, errors, refused, cancelled."""

    requests: int = 0
    active: int = 0
    errors: int = 0
    """Answered with a status of 500 or above, by the engine or by the gateway, or cut inside the answer."""
    refused: int = 0
    """The gateway's own 4xx: wrong key, too large, not HTTP."""
    cancelled: int = 0
    """The client left before its answer was complete; the engine was told."""
