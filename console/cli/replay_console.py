"""`specdeck replay` on a terminal: the console on a replay process of its own."""

from __future__ import annotations

from pathlib import Path

from console.app.main import Opening, Outcome, run_console
from console.app.replay.moment import Moment
from console.cli.console import require_terminal
from console.cli.outcomes import CHECK_FAILED, OK, say
from console.cli.replay_child import replay_child
from console.cli.settings.defaults import in_force
from console.cli.web_child import web_child


def open_replay(trace: Path, speed: float | None, at: Moment | None, speedup_floor: float | None) -> int:
    """Show a trace until the console is left. The exit code.

    Raises:
        BadInput: there is no terminal.
    """
    require_terminal("`specdeck replay --headless` runs a trace to its end and reports without one")
    settings = in_force()
    with replay_child(trace, speedup_floor) as child, web_child("--replay", str(trace)) as serving:
        outcome = run_console(
            child.sockets.feed,
            child.sockets.snapshots,
            on_disconnect=child.check,
            intent="replay",
            theme=settings.theme,
            keymap=settings.keys,
            opening=Opening(speed, at),
            serving=serving,
        )
        if outcome is Outcome.NOTHING:
            say(f"Error: {child.last_words()}")
            return child.exit_code
    if outcome is Outcome.FAILED:
        say("the console broke; nothing of the trace was changed")
        return CHECK_FAILED
    return OK
