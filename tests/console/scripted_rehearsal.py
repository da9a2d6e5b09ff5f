"""A stand-in for `specdeck rehearse`, run as a process of its own: it tells the station how far it is and heeds an
interrupt. Plan `mute` never says a word; any other goes on until it is interrupted.

It puts the file `given-back` beside the sockets once it was interrupted and has asked the station a last time.
"""

from __future__ import annotations

import os
import sys
import time

from console.cli.outcomes import INTERRUPTED, OK
from console.cli.station import ask
from console.feed.messages import RehearsalView, Snapshot
from engine.places import runtime_dir

PLAN = sys.argv[-1]
ID = "20260921T120000Z-" + PLAN


def tell(state: str, **more: object) -> None:
    view = RehearsalView(id=ID, plan=PLAN, state=state, passes=3, pid=os.getpid(), **more)  # type: ignore[arg-type]
    ask("rehearsal_progress", type(None), view)


def main() -> int:
    try:
        for number in range(1, 1000):
            if PLAN != "mute":
                tell("running", pass_number=number, seconds_left=60.0 - number)
            time.sleep(0.1)
    except KeyboardInterrupt:
        assert ask("snapshot", Snapshot).policy is not None
        (runtime_dir() / "given-back").touch()
        tell("stopped", note="interrupted")
        return INTERRUPTED
    return OK


sys.exit(main())
