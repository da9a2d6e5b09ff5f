"""Names of actions that the policy's records are read by."""

from __future__ import annotations

from typing import Final

REHEARSAL: Final = "rehearsal_start"
UNDO: Final = "undo"
REVERT: Final = "revert"
