"""What the gateway counts about itself."""

from __future__ import annotations

from typing import Literal

import msgspec

Countable = Literal["errors", "unavailable", "refused", "cancelled", "hints_rejected", "unsupported"]
"""What a request can be counted as when the gateway answers it itself."""


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

    # What was done to requests, whatever became of them.
    tags_put: int = 0
    """The workload tag came in the header and was put into the body."""
    hints_seen: int = 0
    """`disable_speculation` was asked for, in any of its places."""
    hints_lost: int = 0
    """A tag or hint of the headers that could not be put in: a POST to another path, or no JSON object to hold it."""
    hints_rejected: int = 0
    """Of `refused`: a `disable_speculation` that is neither true nor false."""
    unsupported: int = 0
    """Of `refused`: `min_p` or `logit_bias`, and no engine without speculation."""
    vanilla_by_lane: int = 0
    """Sent to the engine without speculation since their workload is in the vanilla lane."""
    vanilla_by_hint: int = 0
    """Sent there since they asked for `disable_speculation`."""
    vanilla_by_parameters: int = 0
    """Sent there for `min_p` or `logit_bias`."""
    vanilla_spilled: int = 0
    """By lane or hint, while that engine was away: sent to the one with speculation, which gives them K = 0."""

    def add(self, *names: Countable) -> None:
        for name in names:
            setattr(self, name, getattr(self, name) + 1)
