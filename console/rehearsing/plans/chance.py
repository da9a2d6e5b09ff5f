"""Independent streams of chance: changing what is drawn from one leaves the others as they were."""

from __future__ import annotations

import random


def stream(seed: int, repeat: int, *purpose: str) -> random.Random:
    """The same for the same arguments."""
    return random.Random("\0".join((str(seed), str(repeat), *purpose)))
