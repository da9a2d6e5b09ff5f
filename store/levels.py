"""The time cells that rows are added up in: every level is a whole multiple of the one before."""

from __future__ import annotations

from typing import Final, NamedTuple

CELL_SECONDS: Final = 10
"""The finest cell: live windows, rollups, the judge's clock."""


class Level(NamedTuple):
    name: str
    """As it ends the names of its tables: `rollup_10s`, `load_10s`."""
    seconds: int
    keep_seconds: float
    """Cells that ended longer ago are removed."""

    def floor(self, ts: float) -> float:
        """Start of the cell that holds `ts`, Unix seconds."""
        return ts // self.seconds * self.seconds


DAY: Final = 86400.0

LEVELS: Final = (
    Level("10s", CELL_SECONDS, 7 * DAY),
    Level("5m", 300, 60 * DAY),
    Level("1h", 3600, 730 * DAY),
)
FINEST: Final = LEVELS[0]
COARSEST: Final = LEVELS[-1]
