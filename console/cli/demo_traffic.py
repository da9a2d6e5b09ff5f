"""`python -m console.cli.demo_traffic`: the demo's traffic, once the engine is calibrated; it would break that off.

Options as those of `console.traffic`."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from console.cli.outcomes import say
from console.cli.station import ask
from console.feed.messages import Snapshot
from console.traffic.command import main

_LOOK_SECONDS: Final = 0.5
_START_SECONDS: Final = 900.0
"""Then the traffic's own patience with a server that isn't there begins."""
_CALIBRATION_SECONDS: Final = 90.0
"""After the engine came to serve: others' requests may hold a calibration up for ever."""


def wait_for_calibration() -> None:
    """Until the engine of ours has been calibrated or won't be. A station that can't be asked is asked again."""
    deadline, told, served = time.monotonic() + _START_SECONDS, "", False
    while time.monotonic() < deadline:
        try:
            snapshot = ask("snapshot", Snapshot, seconds=5.0)
        except click.ClickException:
            time.sleep(_LOOK_SECONDS)
            continue
        calibration = snapshot.calibration
        if calibration is None or calibration.state in ("done", "skipped"):
            return
        if not served and any(engine.state == "serving" for engine in snapshot.engines):
            served, deadline = True, time.monotonic() + _CALIBRATION_SECONDS
        if calibration.state != told:
            told = calibration.state
            say(f"calibration {calibration.state}: {calibration.text}")
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    wait_for_calibration()
    sys.exit(main())
