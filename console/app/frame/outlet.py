"""Where the console's output goes: the terminal, as long as it takes any, and nowhere once it is given up.

Textual's writer thread writes here. On its own it would die with the first write to a dead terminal, and wait for ever
for one that is not read (a suspended ssh, a stuck multiplexer): its queue then blocks the event loop, and with it the
way out.
"""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from typing import Final

WAIT_MS: Final = 100


class Outlet:
    """Stands in for a text stream. Never raises and never waits longer than until `give_up`. Always UTF-8.

    A terminal draws what it is sent in its own encoding, whatever locale this process was started in.
    """

    def __init__(self, fd: int) -> None:
        self._fd = _own(fd)
        self._given_up = threading.Event()
        self._waiting_since: float | None = None

    @property
    def behind(self) -> bool:
        """The terminal has not yet taken what it was sent: a further picture would only queue up behind that."""
        return self._waiting_since is not None

    def stuck(self, seconds: float) -> bool:
        """The terminal has taken nothing for so long."""
        since = self._waiting_since
        return since is not None and time.monotonic() - since >= seconds

    def give_up(self) -> None:
        """Drop what has not been taken, and all that comes."""
        self._given_up.set()

    def write(self, text: str) -> int:
        left = memoryview(text.encode("utf-8", "replace"))
        while left and not self._given_up.is_set():
            try:
                left = left[os.write(self._fd, left) :]
                self._waiting_since = None
            except BlockingIOError:
                self._waiting_since = self._waiting_since or time.monotonic()
                _wait(self._fd)
            except OSError:  # it is gone
                self.give_up()
        self._waiting_since = None
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return True

    def close(self) -> None:
        self.give_up()
        with suppress(OSError):
            os.close(self._fd)


def _own(fd: int) -> int:
    """The same terminal, opened anew: not to wait there must not be forced on the shell that shares `fd`."""
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # of a container it may have no name here
        return os.dup(fd)


def _wait(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    poll.poll(WAIT_MS)
