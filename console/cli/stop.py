"""`specdeck stop`: end it, nothing left behind."""

from __future__ import annotations

from collections.abc import Callable

import click

from console.cli.outcomes import CheckFailed, say

_PATIENCE_SECONDS = 60.0


@click.command(epilog="Example: specdeck stop")
@click.option("--station-only", is_flag=True, help="End the station; gateway and engine go on serving.")
def stop(station_only: bool) -> None:
    """End station, gateway and engine, and check that no process is left.

    Works without a station too: what a killed one left serving is ended by the state files.
    """
    if station_only:
        end_station()
    else:
        end_everything()


def end_station() -> None:
    """End the station alone."""
    from console.cli.station import require_station, stop_station

    station = require_station()
    stop_station(station, everything=False, seconds=_PATIENCE_SECONDS)
    say(f"the station (pid {station.pid}) has ended; gateway and engine go on serving on {station.info.base_url}")


def end_everything(tell: Callable[[str], None] = say) -> None:
    """End all processes of this runtime directory. Raises CheckFailed when one is left."""
    from console.cli.leftovers import end_all, living
    from console.cli.station import running_station, stop_station

    station = running_station()
    if station is None and not living():
        tell("nothing was running")
        return
    if station is not None:
        tell(f"stopping the station (pid {station.pid}), its gateway and its engine")
        stop_station(station, everything=True, seconds=_PATIENCE_SECONDS)
    end_all(tell)
    left = living()
    if left:
        raise CheckFailed("still running: " + ", ".join(f"{role} (pid {pid})" for role, pid in left.items()))
    tell("stopped, nothing is left running")
