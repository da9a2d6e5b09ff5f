"""Whether anybody but the calibration uses the engine: by the sequences it serves and by the gateway's requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.frames import Announcement, ArrivedSequence, Frame
from store.buckets import CALIBRATION


class Clients:
    """Fed with what the engine says. `at_gateway`: requests that the gateway has under way."""

    def __init__(self, at_gateway: Callable[[], int]) -> None:
        self._at_gateway = at_gateway
        self._boot = ""
        self._live: set[int] = set()
        self.busy_at: float | None = None
        """When the last one was there, as far as anybody looked; None: nobody ever was."""

    def take(self, message: Frame | Announcement, now: float) -> None:
        if message.boot != self._boot:
            self._boot, self._live = message.boot, set()
        if isinstance(message, Announcement):
            self._live = _theirs(message.sequences)
        else:
            self._live |= _theirs(message.sequences)
        if self._live:
            self.busy_at = now  # also of one that comes and goes in a single frame
        if isinstance(message, Frame):
            self._live -= {finished.seq for finished in message.finishes}

    def busy(self, now: float) -> bool:
        """Whether somebody uses it at this moment."""
        if self._live or self._at_gateway() > 0:
            self.busy_at = now
            return True
        return False

    def were_there_since(self, moment: float) -> bool:
        """Whether somebody came in the meantime, even if gone by now."""
        return self.busy_at is not None and self.busy_at >= moment


def _theirs(sequences: Iterable[ArrivedSequence]) -> set[int]:
    return {sequence.seq for sequence in sequences if sequence.workload != CALIBRATION}
