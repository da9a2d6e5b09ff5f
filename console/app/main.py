"""Opens the console on a station's sockets and says how it ended."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from console.app.application import OnDisconnect, SpecdeckApp
from console.app.frame.outcome import EndedError, Ending, Intent, OpenTrace, Outcome
from console.app.frame.outlet import Outlet
from console.app.frame.serving import Serving, ServingError
from console.app.frame.terminal import NoTerminalError, in_browser, require_terminal, watched
from console.app.replay.desk import Opening
from console.app.traces.returning import Return
from console.feed.actor import own_actor
from console.feed.client import FeedClient
from console.notices.settings import NotifySettings

__all__ = [
    "EndedError",
    "Ending",
    "NoTerminalError",
    "OnDisconnect",
    "OpenTrace",
    "Opening",
    "Outcome",
    "Return",
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
    notify: NotifySettings = NotifySettings(),  # noqa: B008  # frozen
    back: bool = False,
    returned: Return | None = None,
    serving: Serving | None = None,
) -> Ending:
    """Run the console until it is left. It paints before any station answers, and survives the station.

    Only says what the operator chose: on `Outcome.STOP` the caller stops the station. `opening`: how a replay begins.
    `keymap`: keys by action id, in place of their own; `theme`: `dark`, `light` or `clear`. `notify`: what comes
    to the operator by itself. `back`: a replay that is left gives `Outcome.BACK`. `returned`: from which trace this
    console is come back to. `serving`: what shows this console in browsers.

    Raises:
        NoTerminalError: standard input or error is no terminal.
    """
    from console.app.frame.driver import driver_on

    require_terminal()
    outlet = Outlet(2)
    actor = own_actor()
    client = FeedClient(feed_path, snapshots_path, actor=actor)
    app = SpecdeckApp(
        client,
        read_only=read_only,
        on_disconnect=on_disconnect,
        intent=intent,
        opening=opening,
        keymap=keymap,
        theme=theme,
        notify=notify,
        actor=actor,
        back=back,
        returned=returned,
        folder=_folder(),
        behind=lambda: outlet.behind,
        in_browser=in_browser(),
        serving=serving,
    )
    if not in_browser():
        app.driver_class = driver_on(outlet)
    lost = False

    def on_hangup() -> None:
        nonlocal lost
        lost = True
        app.end(Outcome.LOST_TTY)

    with closing(outlet), watched(outlet, on_hangup, lambda: app.end(Outcome.DETACH)):
        outcome = asyncio.run(_run(app, client))
    if lost:
        return Outcome.LOST_TTY
    if outcome is None and in_browser() and not app.return_code:
        return Outcome.DETACH  # its tab was closed: Textual's web driver ends the app without a word of ours
    return outcome if outcome is not None else Outcome.FAILED


async def _run(app: SpecdeckApp, client: FeedClient) -> Ending | None:
    async with client:  # another console may be opened in this process
        return await app.run_async()


def _folder() -> Path | None:
    """That the console was started in, None where it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None
