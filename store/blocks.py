"""Blocks of time that a realised speedup's interval is clustered by: the rows of a step share its duration, and the
steps of a moment are alike.

Their length goes by the length of the stretch alone, so that the interval is the same however the stretch is read.
"""

from __future__ import annotations

from typing import Final

from store.levels import LEVELS, Level

_BLOCKS: Final = ((300.0, 10), (3600.0, 60), (86400.0, 300))
"""Up to so many seconds, blocks of so many: as in the live windows of 5 minutes and 1 h."""
_LONGEST: Final = 3600


def level_of(block: int) -> Level:
    """The coarsest rollup that such blocks can be made of."""
    return next(level for level in reversed(LEVELS) if level.seconds <= block)


def block_seconds(seconds: float) -> int:
    """Length of a block in a stretch of so many seconds: at least 12 blocks, and no more than 360."""
    return next((block for longest, block in _BLOCKS if seconds <= longest), _LONGEST)
