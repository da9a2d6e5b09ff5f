"""Notices that the terminal went away, by signal or by hang-up, so that no console runs on without one.

Textual's writer thread dies with the first write to a dead terminal and its queue then blocks the event loop. So the
hang-up is watched from a thread of our own, and what was the terminal becomes /dev/null before anything is written.
"""

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

POLL_MS: Final = 500
_STANDARD: Final = (0, 1, 2)


WEB_DRIVER: Final = "textual.drivers.web_driver:WebDriver"


class NoTerminalError(RuntimeError):
    """There is no terminal to draw on."""


def in_browser() -> bool:
    """Whether the terminal is a page in a browser, with a web server of Textual's at the other end of our pipes."""
    return os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER


def require_terminal() -> None:
    """Raises NoTerminalError: unless standard input and error, which Textual uses, are terminals, or a browser is."""
    if in_browser():
        return
    missing = [name for name, fd in (("input", 0), ("error", 2)) if not os.isatty(fd)]
    if missing:
        raise NoTerminalError(
            f"standard {' and '.join(missing)} is no terminal: run the console in one, or use the headless commands "
            f"(specdeck status, report)"
        )


@contextmanager
def watched(on_hangup: Callable[[], None], on_terminate: Callable[[], None]) -> Iterator[None]:
    """Call `on_hangup` once when the terminal is gone, `on_terminate` on SIGTERM; both may come from any thread."""
    gone = threading.Event()
    done = threading.Event()

    def hang_up() -> None:
        if not gone.is_set():
            gone.set()
            _give_up_terminal()
            on_hangup()

    def on_signal(number: int, frame: FrameType | None) -> None:
        # From a thread: the handler runs between two bytecodes of the event loop's own thread.
        target = hang_up if number == signal.SIGHUP else on_terminate
        threading.Thread(target=target, name="end-console", daemon=True).start()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGHUP, signal.SIGTERM)}
    watch = threading.Thread(target=_watch, args=(done, hang_up), name="terminal-watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(done: threading.Event, hang_up: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0, 0)  # hang-up is reported unasked
    while not done.is_set():
        if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(POLL_MS)):
            hang_up()
            return


def _give_up_terminal() -> None:
    """Let later writes to the dead terminal go nowhere instead of failing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in _STANDARD:
        with suppress(OSError):
            if fd == 0 or _is_dead_terminal(fd):
                os.dup2(nowhere, fd)
    os.close(nowhere)


def _is_dead_terminal(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0)) or os.isatty(fd)
