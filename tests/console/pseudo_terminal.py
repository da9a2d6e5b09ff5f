"""A program on a pseudo terminal of its own, as a person has it before them."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Sequence
from typing import Final

DEADLINE: Final = 60.0
LEFT_CLEAN: Final = b"\x1b[?1049l"
"""Textual has left the alternate screen."""


class Terminal:
    """What the program paints is kept in `output`."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        )
        os.close(slave)
        self.output = b""

    def read_until(self, wanted: bytes) -> None:
        deadline = time.monotonic() + DEADLINE
        while wanted not in self.output:
            assert time.monotonic() < deadline, self.output[-2000:]
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.output += os.read(self.master, 65536)
                except OSError:  # the other end is closed
                    assert wanted in self.output, self.output[-2000:]

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def hang_up(self) -> None:
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def end(self) -> None:
        self.hang_up()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
