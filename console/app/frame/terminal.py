"""Notices that the terminal went away, by signal or by hang-up, so that no console runs on without one."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from console.app.frame.outlet import Outlet

POLL_MS: Final = 500
STUCK_SECONDS: Final = 1.0
"""A terminal that takes nothing for so long is not waited for when the console has to end."""

_ENDING: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
_TEXTUALS: Final = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
"""Signals that Textual takes over and does not give back: a stop after its end would bring its screen up again."""


WEB_DRIVER: Final = "textual.drivers.web_driver:WebDriver"


class NoTerminalError(RuntimeError):
    """There is no terminal to draw on."""


def in_browser() -> bool:
    """Whether the terminal is a page in a browser, with a web server of Textual's at the other end of our pipes."""
    return os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER


def require_terminal() -> None:
    """Raises NoTerminalError: unless standard input and error, which Textual uses, are terminals to draw on; not in a
    browser."""
    if in_browser():
        return
    missing = [name for name, fd in (("input", 0), ("error", 2)) if not os.isatty(fd)]
    instead = "or use the headless commands (specdeck status, report)"
    if missing:
        raise NoTerminalError(f"standard {' and '.join(missing)} is no terminal: run the console in one, {instead}")
    if os.environ.get("TERM") == "dumb":
        raise NoTerminalError(
            f"this terminal can't place text (TERM=dumb): run the console in another, or set TERM if it can, {instead}"
        )


@contextmanager
def watched(outlet: Outlet, on_hangup: Callable[[], None], on_terminate: Callable[[], None]) -> Iterator[None]:
    """Call `on_hangup` when the terminal is gone or SIGHUP comes, `on_terminate` on SIGTERM and SIGINT.

    Both may come from any thread, and more than once. Nothing that ends the console then waits for the terminal.
    """
    done = threading.Event()

    def gone() -> None:
        _give_up_writing(outlet)
        _to_nowhere(0)
        on_hangup()

    def end(number: int) -> None:
        (on_hangup if number == signal.SIGHUP else on_terminate)()
        while not done.wait(STUCK_SECONDS / 4):
            if outlet.stuck(STUCK_SECONDS):
                _give_up_writing(outlet)

    def on_signal(number: int, frame: FrameType | None) -> None:
        # From a thread: the handler runs between two bytecodes of the event loop's own thread.
        threading.Thread(target=end, args=(number,), name="end-console", daemon=True).start()

    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in (*_ENDING, *_TEXTUALS)}
    for number in _ENDING:
        signal.signal(number, on_signal)
    watch = threading.Thread(target=_watch, args=(done, gone), name="terminal-watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(done: threading.Event, gone: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0, 0)  # hang-up is reported unasked
    while not done.is_set():
        if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(POLL_MS)):
            gone()
            return


def _give_up_writing(outlet: Outlet) -> None:
    """What is written to the terminal goes nowhere from now on."""
    outlet.give_up()
    for fd in (1, 2):
        if _is_terminal(fd):
            _to_nowhere(fd)


def _to_nowhere(fd: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    with suppress(OSError):
        os.dup2(nowhere, fd)
    os.close(nowhere)


def _is_terminal(fd: int) -> bool:
    """It is one, or was."""
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0)) or os.isatty(fd)
