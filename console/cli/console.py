"""Opening the console: on a station that runs, or on one that is started for it; and what happens when it is left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from console.cli.launcher import Launcher
from console.cli.options import station_options
from console.cli.outcomes import CHECK_FAILED, OK, BadInput, say
from console.cli.station import running_station
from console.statefile import RunningStation
from engine.sockets import sockets

if TYPE_CHECKING:
    from console.app.main import Outcome, Serving

SERVED_ELSEWHERE: Final = "the station ran under `specdeck serve`: whoever started that starts it again"

REVIVE_SECONDS: Final = 10.0
"""Between two looks whether the station lives while a trace is shown in the console's place."""


def open_console(given: dict[str, Any]) -> int:
    """Bare `specdeck`: the exit code."""
    require_terminal("`specdeck serve` runs the station without one, `specdeck demo` shows it off without one")
    station = running_station()
    if station is not None:
        say(f"a station runs already (pid {station.pid}): attaching; options for a new one are not used")
        return show("run", reviver(station))
    launcher = Launcher(station_options(**given))
    launcher.spawn()  # and paint meanwhile: the console shows how the station and its engine come up
    return show("run", launcher.revive)


def reviver(station: RunningStation) -> Callable[[], str | None] | None:
    """What starts a station again that was found running, should it die while its console is open."""
    if station.info.foreground:
        return lambda: SERVED_ELSEWHERE
    launcher = Launcher.remembered()
    return launcher.revive if launcher is not None else None


def show(intent: str, revive: Callable[[], str | None] | None, *, read_only: bool = False) -> int:
    """Run the console until it is left, then do what was chosen. The exit code."""
    from console.app.frame.terminal import in_browser
    from console.app.main import Outcome
    from console.cli.web_child import web_child

    with web_child() as serving:
        outcome = _shown(intent, revive, read_only, serving)
    if outcome is Outcome.STOP:
        return stop_all()
    if outcome is Outcome.FAILED:
        say("the console broke; everything goes on serving: `specdeck attach` opens another")
        return CHECK_FAILED
    station = running_station()
    if station is not None and not in_browser():
        say(f"still serving on {station.info.base_url}: come back with `specdeck attach`, end it with `specdeck stop`")
    return OK


def _shown(intent: str, revive: Callable[[], str | None] | None, read_only: bool, serving: Serving | None) -> Outcome:
    """The console, and between its showings the traces that are opened from it: the station goes on meanwhile."""
    from console.app.main import Opening, OpenTrace, Outcome, Return, run_console
    from console.cli.replay_console import play
    from console.cli.settings.defaults import in_force
    from console.cli.settings.notifying import notify_settings

    settings = in_force()
    places = sockets()
    returned: Return | None = None
    while True:
        outcome = run_console(
            places.feed,
            places.snapshots,
            read_only=read_only,
            on_disconnect=revive,
            theme=settings.theme,
            keymap=settings.keys,
            notify=notify_settings(settings),
            intent=intent,  # type: ignore[arg-type]  # one of the four words, from this package alone
            returned=returned,
            serving=serving,
        )
        if not isinstance(outcome, OpenTrace):
            return outcome
        with watched_over(revive):
            played = play(outcome.path, Opening(), back=True, read_only=read_only)
        if played.outcome not in (Outcome.BACK, Outcome.NOTHING):
            return played.outcome  # the terminal went away, or somebody ended this process
        returned = Return(str(played.path), played.why)


@contextmanager
def watched_over(revive: Callable[[], str | None] | None) -> Iterator[None]:
    """A station that dies while no console looks at it is started again all the same."""
    done = threading.Event()

    def watch() -> None:
        while revive is not None and not done.wait(REVIVE_SECONDS):
            with suppress(Exception):  # whatever it is: the console that comes back tries again, and says so
                revive()

    watcher = threading.Thread(target=watch, name="station-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()  # it may be starting one


def stop_all() -> int:
    """End everything; the exit code."""
    from console.cli.stop import end_everything

    end_everything()
    return OK


def require_terminal(instead: str) -> None:
    """Raises BadInput: there is no terminal to show a console on."""
    from console.app.frame.terminal import NoTerminalError
    from console.app.frame.terminal import require_terminal as check

    try:
        check()
    except NoTerminalError as error:
        raise BadInput(f"{error}; {instead}") from error
