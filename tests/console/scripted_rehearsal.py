"""A stand-in for `specdeck rehearse`, run as a process of its own: it tells the station how far it is and heeds an
interrupt. The plan is the name of its behaviour: `mute` never says a word, `bad` ends at once as for a bad plan, `deaf`
heeds no interrupt, `short` comes to its end; any other goes on until it is interrupted.

It puts the file `given-back` beside the sockets once it was interrupted and has asked the station a last time.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from console.cli.outcomes import BAD_INPUT, INTERRUPTED
from console.cli.station import ask
from console.feed.messages import RehearsalView, Snapshot
from engine.places import runtime_dir

PLAN = sys.argv[-1]
ID = "20260921T120000Z-" + PLAN


def tell(state: str, **more: object) -> None:
    view = RehearsalView(id=ID, plan=PLAN, state=state, passes=3, pid=os.getpid(), **more)  # type: ignore[arg-type]
    ask("rehearsal_progress", type(None), view)


def main() -> int:
    if PLAN == "bad":
        print("specdeck: error: phase 2: seconds must be above 0", flush=True)
        return BAD_INPUT
    if PLAN == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for number in range(1, 4 if PLAN == "short" else 1000):
            if PLAN != "mute":
                tell("running", pass_number=number, seconds_left=60.0 - number)
            time.sleep(0.1)
    except KeyboardInterrupt:
        assert ask("snapshot", Snapshot).policy is not None
        (runtime_dir() / "given-back").touch()
        tell("stopped", note="interrupted")
        return INTERRUPTED
    tell("over", note="3 passes")
    return 0


sys.exit(main())
