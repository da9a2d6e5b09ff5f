"""How a console ended: what the command that opened it has to do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

Intent = Literal["run", "demo", "attach", "replay"]
"""Why the console was opened; it changes only what the first screens advise."""


class Outcome(Enum):
    """`DETACH`: leave everything serving. `STOP`: end station, gateway and engine. `LOST_TTY`: the terminal went away.

    `NOTHING`: there never was a picture, and none would have come; whoever opened the console says why. `FAILED`: the
    console itself broke (its traceback is on stderr); everything keeps serving. `BACK`: left a replay that another
    console opened, which is to be shown again.
    """

    DETACH = "detach"
    STOP = "stop"
    LOST_TTY = "lost_tty"
    NOTHING = "nothing"
    FAILED = "failed"
    BACK = "back"


@dataclass(frozen=True)
class OpenTrace:
    """A trace is to be replayed; when that is left, the console that it was opened from is to be shown again."""

    path: Path


Ending = Outcome | OpenTrace


class EndedError(Exception):
    """What the console looks at has ended for good: no picture will come any more. The text says why."""
