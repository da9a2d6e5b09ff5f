"""Prompts and answers on their way: from the gateway, which sees them, through the station to the recording that asked.

They are asked for again and again, and each asking holds for a few seconds: whoever records, or the station, need only
die, and the gateway forgets what it has and keeps nothing more. Nothing here is ever written to a file on the way.
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.records import TextRecord

LEASE_SECONDS: Final = 5.0
"""For so long one asking holds."""


class TextsWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `record_text`: text is wanted for another `LEASE_SECONDS`, and what there is after number `after`."""

    recording: str
    """A name that no other recording has."""
    file: str
    """Where it is going to be written, for those who look on."""
    after: int = 0
    """Up to this number they have arrived, and can be dropped."""
    end: bool = False
    """None is wanted any more but what there is: answers that are on their way are handed over as far as they came."""


class TextsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The same, as the station passes it on to the gateway, with the names of the engines behind it."""

    recording: str
    after: int
    end: bool
    engine: str
    vanilla_engine: str


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to both."""

    since: float = 0.0
    """Since when text is kept without a break, Unix seconds: later than before where an asking came too late."""
    texts: list[TextRecord] = []
    """In the order in which they ended. Their numbers go up by one, to `last`."""
    last: int = 0
    more: bool = False
    """Whether there are some that found no place in this answer."""
    left_out: dict[str, int] = {}
    """Reason → requests since `since` whose text was not kept."""
    error: str | None = None
    """Why none is kept for this recording."""
