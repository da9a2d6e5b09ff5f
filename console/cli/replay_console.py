"""The console on a replay process of its own: for `specdeck replay`, and for a trace that is opened from a console."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from console.app.frame.terminal import in_browser
from console.app.main import Opening, OpenTrace, Outcome, Return, run_console
from console.app.replay.moment import Moment
from console.cli.console import require_terminal
from console.cli.outcomes import CHECK_FAILED, OK, say
from console.cli.replay_child import replay_child
from console.cli.settings.defaults import in_force
from console.cli.settings.notifying import notify_settings
from console.cli.web_child import web_child


class Played(NamedTuple):
    """How it was left. With `Outcome.NOTHING`: what the replay process said, and the exit code for it."""

    outcome: Outcome
    path: Path
    why: str = ""
    exit_code: int = OK


def open_replay(trace: Path, speed: float | None, at: Moment | None, speedup_floor: float | None) -> int:
    """Show a trace until the console is left. The exit code.

    Raises:
        BadInput: there is no terminal.
    """
    require_terminal("`specdeck replay --headless` runs a trace to its end and reports without one")
    played = play(trace, Opening(speed, at), speedup_floor)
    if played.outcome is Outcome.NOTHING:
        say(f"Error: {played.why}")
        return played.exit_code
    if played.outcome is Outcome.FAILED:
        say("the console broke; nothing of the trace was changed")
        return CHECK_FAILED
    return OK


def play(
    trace: Path, opening: Opening, speedup_floor: float | None = None, *, back: bool = False, read_only: bool = False
) -> Played:
    """Show a trace, and in its place each that is opened from it, until one is left. One that can't be shown gives way
    to the one that it was opened from. `back`: another console waits to be shown again. `read_only`: nothing is
    exported either."""
    before: Path | None = None
    returned: Return | None = None
    while True:
        played = _play_one(trace, opening, speedup_floor, back=back, returned=returned, read_only=read_only)
        opening = Opening()
        if isinstance(played, OpenTrace):
            before, trace, returned = trace, played.path, None
        elif played.outcome is Outcome.NOTHING and before is not None:
            returned = Return(str(trace), played.why)
            trace, before = before, None
        else:
            return played


def _play_one(
    trace: Path,
    opening: Opening,
    speedup_floor: float | None,
    *,
    back: bool,
    returned: Return | None,
    read_only: bool,
) -> Played | OpenTrace:
    settings = in_force()
    with ExitStack() as stack:
        try:
            child = stack.enter_context(replay_child(trace, speedup_floor))
        except OSError as error:  # a full disk, no more processes: the console that waits is shown again all the same
            why = f"no replay can be started here: {error.strerror or error}"
            return Played(Outcome.NOTHING, trace, why, CHECK_FAILED)
        outcome = run_console(
            child.sockets.feed,
            child.sockets.snapshots,
            read_only=read_only or in_browser(),  # an export writes with the rights of whoever serves the browser
            on_disconnect=child.check,
            intent="replay",
            theme=settings.theme,
            keymap=settings.keys,
            notify=notify_settings(settings),
            opening=opening,
            back=back,
            returned=returned,
            serving=stack.enter_context(web_child("--replay", str(trace.absolute()))),
        )
        if isinstance(outcome, OpenTrace):
            return outcome
        if outcome is Outcome.NOTHING:
            return Played(outcome, trace, child.last_words(), child.exit_code)
    return Played(outcome, trace)
