"""When a screen asks the station for a list again: at once where what it is about has changed, else now and then."""

from __future__ import annotations

from typing import Final

from console.app.picture import Picture

IN_A_REPLAY: Final = 0.001
"""Seconds of record after which a replay is asked again: a seek may pass anything, either way."""


class Inquiry:
    """One question at a time: one that is dropped costs the station as much as one that is heard."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: of the shown time, after which the answer may be another though nothing seems to have changed."""
        self._seconds = seconds
        self._asked: tuple[float, object] | None = None
        self._open = False

    def begin(self, picture: Picture, about: object) -> bool:
        """Whether to ask now; then `end` is to follow. `about`: what would make another answer worth asking for."""
        snapshot = picture.snapshot
        if self._open or snapshot is None or picture.link.state != "connected" or picture.paused_since is not None:
            return False
        enough = IN_A_REPLAY if picture.replaying else self._seconds
        asked = self._asked
        if asked is not None and asked[1] == about and abs(snapshot.ts - asked[0]) < enough:
            return False
        self._asked, self._open = (snapshot.ts, about), True
        return True

    def end(self) -> None:
        """The answer has come, or none will."""
        self._open = False

    def forget(self) -> None:
        """Ask again at the next occasion, whatever is known."""
        self._asked = None
