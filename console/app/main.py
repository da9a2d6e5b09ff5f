"""Opens the console on a station's sockets and says how it ended."""

from __future__ import annotations

from pathlib import Path

from console.app.application import OnDisconnect, SpecdeckApp
from console.app.frame.outcome import EndedError, Intent, Outcome
from console.app.frame.serving import Serving, ServingError
from console.app.frame.terminal import NoTerminalError, in_browser, require_terminal, watched
from console.app.replay.desk import Opening
from console.feed.client import FeedClient

__all__ = [
    "EndedError",
    "NoTerminalError",
    "OnDisconnect",
    "Opening",
    "Outcome",
    "Serving",
    "ServingError",
    "run_console",
]


def run_console(
    feed_path: Path,
    snapshots_path: Path,
    *,
    read_only: bool = False,
    on_disconnect: OnDisconnect | None = None,
    intent: Intent = "run",
    opening: Opening | None = None,
    keymap: dict[str, str] | None = None,
    theme: str | None = None,
    serving: Serving | None = None,
) -> Outcome:
    """Run the console until it is left. It paints before any station answers, and survives the station.

    Only says what the operator chose: on `Outcome.STOP` the caller stops the station. `opening`: how a replay begins.
    `keymap`: keys by action id, in place of their own; `theme`: `dark`, `light` or `clear`. `serving`: what
    shows this console in browsers.

    Raises:
        NoTerminalError: standard input or error is no terminal.
    """
    require_terminal()
    client = FeedClient(feed_path, snapshots_path)
    app = SpecdeckApp(
        client,
        read_only=read_only,
        on_disconnect=on_disconnect,
        intent=intent,
        opening=opening,
        keymap=keymap,
        theme=theme,
        in_browser=in_browser(),
        serving=serving,
    )
    lost = False

    def on_hangup() -> None:
        nonlocal lost
        lost = True
        app.end(Outcome.LOST_TTY)

    with watched(on_hangup, lambda: app.end(Outcome.DETACH)):
        outcome = app.run()
    if lost:
        return Outcome.LOST_TTY
    if outcome is None and in_browser() and not app.return_code:
        return Outcome.DETACH  # its tab was closed: Textual's web driver ends the app without a word of ours
    return outcome if outcome is not None else Outcome.FAILED
