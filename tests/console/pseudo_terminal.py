"""A program on a pseudo terminal of its own, as a person has it before them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.cells import cell_len

DEADLINE: Final = 60.0
LEFT_CLEAN: Final = b"\x1b[?1049l"
"""Textual has left the alternate screen."""

AS_FOUND: Final = {
    "1049": False, "25": True, "1000": False, "1003": False, "1015": False, "1006": False, "1004": False,
    "2004": False, "7": True, "kitty": False,
}  # fmt: skip
"""Private modes that a shell expects: no alternate screen, a cursor, no mouse, focus or paste reports, line wrap."""

_MODE = re.compile(rb"\x1b\[(?:\?([0-9;]+)([hl])|([<>])[0-9]*u)")
_PIECE = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[[^a-zA-Z]*[a-zA-Z]|\x1b\][^\x07]*\x07|(\r)|(\n)|([^\x1b\r\n]+)")


class Terminal:
    """What the program paints is kept in `output`.

    `environment`: added to that of the test; a None takes a variable away.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        size: tuple[int, int] = (80, 24),
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        self.master, slave = pty.openpty()
        self.resize(*size)
        self._settings = termios.tcgetattr(self.master)
        given = {**os.environ, "TERM": "xterm-256color", "COLUMNS": None, "LINES": None, **(environment or {})}
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={name: value for name, value in given.items() if value is not None},
        )
        os.close(slave)
        self.output = b""

    @property
    def as_found(self) -> bool:
        """The terminal is what it was before: its settings, and what a program can switch on in it."""
        return termios.tcgetattr(self.master) == self._settings and {**AS_FOUND, **modes(self.output)} == AS_FOUND

    @property
    def picture(self) -> str:
        """What a person sees."""
        return picture(self.output)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds: float) -> None:
        """Take what is painted in this time."""
        self._read_while(lambda: True, seconds)

    def read_until(self, wanted: bytes, since: int = 0) -> None:
        """`since`: where in the output to begin to look."""
        self._read_while(lambda: wanted not in self.output[since:], DEADLINE)
        assert wanted in self.output[since:], self.output[-2000:]

    def read_until_shown(self, wanted: str, seconds: float = DEADLINE) -> None:
        self._read_while(lambda: wanted not in self.picture, seconds)
        assert wanted in self.picture, self.picture

    def _read_while(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while condition() and (left := deadline - time.monotonic()) > 0:
            if select.select([self.master], [], [], min(left, 0.05))[0]:
                try:
                    self.output += os.read(self.master, 65536)
                except OSError:  # the other end is closed
                    return

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self, seconds: float = DEADLINE) -> int:
        """The exit code, once it has ended; what it paints meanwhile is read."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still there after {seconds:g} s"
            self.read(0.05) if self.master >= 0 else time.sleep(0.05)
        if self.master >= 0:
            self.read(0.2)
        return self.process.returncode

    def hang_up(self) -> None:
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def end(self) -> None:
        self.hang_up()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class SlowLink:
    """A person far from the program: what it paints and what she types is `seconds` on its way."""

    def __init__(self, terminal: Terminal, seconds: float) -> None:
        self.output = b""
        """What has arrived."""
        self._terminal, self._seconds = terminal, seconds
        self._painted: deque[tuple[float, bytes]] = deque()
        self._typed: deque[tuple[float, str]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    @property
    def picture(self) -> str:
        return picture(self.output)

    def type(self, keys: str) -> None:
        self._typed.append((time.monotonic() + self._seconds, keys))

    def shows(self, wanted: Callable[[str], bool], seconds: float) -> float | None:
        """Seconds until the picture is as wanted, None where it is not within `seconds`."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            if wanted(self.picture):
                return passed
            time.sleep(0.05)
        return None

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _carry(self) -> None:
        while not self._over.is_set():
            before = len(self._terminal.output)
            self._terminal.read(0.01)
            if fresh := self._terminal.output[before:]:
                self._painted.append((time.monotonic() + self._seconds, fresh))
            while self._painted and self._painted[0][0] <= time.monotonic():
                self.output += self._painted.popleft()[1]
            while self._typed and self._typed[0][0] <= time.monotonic():
                self._terminal.type(self._typed.popleft()[1])


def modes(output: bytes) -> dict[str, bool]:
    """Private modes as they were set last, by number, and the keyboard protocol that is named after kitty."""
    found: dict[str, bool] = {}
    for match in _MODE.finditer(output):
        if match[1] is None:
            found["kitty"] = match[3] == b">"
        else:
            found |= dict.fromkeys(match[1].decode().split(";"), match[2] == b"h")
    return {mode: on for mode, on in found.items() if mode in AS_FOUND}


def picture(output: bytes) -> str:
    """The text on a terminal that was sent this: enough of one for what Textual sends."""
    cells: dict[tuple[int, int], str] = {}
    x = y = 0
    for match in _PIECE.finditer(output.rpartition(b"\x1b[?1049h")[2].decode(errors="replace")):
        if match[1] is not None:
            y, x = int(match[1]) - 1, int(match[2]) - 1
        elif match[3]:
            x = 0
        elif match[4]:
            y += 1
        for char in match[5] or "":
            cells[y, x] = char
            x += cell_len(char)
    height, width = 1 + max((y for y, _ in cells), default=0), 1 + max((x for _, x in cells), default=0)
    return "\n".join("".join(cells.get((y, x), " ") for x in range(width)).rstrip() for y in range(height))
