"""What was done within the last minute, for every console to say what the others did."""

from __future__ import annotations

from collections import deque
from typing import Final

from console.feed.messages import ActView
from console.picturing.action_names import REVERT
from console.picturing.history_text import action_text
from console.station.policy_changes import AUTOMATIC
from engine.records import ControlRecord

SHOWN_SECONDS: Final = 60.0
MOST: Final = 20
LONGEST_TEXT: Final = 400
_OF_THEMSELVES: Final = AUTOMATIC | {"rehearsal", "drill"}
"""They act all the time, and have places of their own on the screen."""


class RecentActs:
    """Bounded: consoles that were away longer read the policy's history."""

    def __init__(self) -> None:
        self._acts: deque[ActView] = deque(maxlen=MOST)

    def take(self, record: ControlRecord) -> None:
        if record.actor in _OF_THEMSELVES and record.action != REVERT:
            return
        text = action_text(record, record.ts)[:LONGEST_TEXT]
        self._acts.append(
            ActView(
                ts=record.ts, actor=record.actor, action=record.action, text=text, workload=record.workload,
                policy=record.policy,
            )
        )  # fmt: skip

    def views(self, now: float) -> list[ActView]:
        """Oldest first. `now`: Unix seconds."""
        return [act for act in self._acts if now - act.ts <= SHOWN_SECONDS]
