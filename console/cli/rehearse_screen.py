"""What a rehearsal says on stderr: lines that stay, and one under them that is written over where it is a terminal."""

from __future__ import annotations

import contextlib
import sys
from typing import Final, TextIO

from console.cli.outcomes import say

_CLEAR: Final = "\r\x1b[K"


class StderrScreen:
    """Elsewhere than on a terminal only lines that stay are written: the line that goes on would fill the file."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._updating = self._stream.isatty()
        self._shown = ""

    def say(self, text: str) -> None:
        self._clear()
        say(text)
        self._show(self._shown)

    def now(self, text: str) -> None:
        """The line that goes on."""
        if self._updating:
            self._clear()
            self._show(text)

    def end(self) -> None:
        """Nothing goes on any more."""
        self._clear()
        self._shown = ""

    def _show(self, text: str) -> None:
        self._shown = text
        if self._updating and text:
            self._write(text[: _width(self._stream)])

    def _clear(self) -> None:
        if self._updating and self._shown:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        """The terminal may be gone: what is measured, and what is to be ended, does not hang on it."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()


def _width(stream: TextIO) -> int:
    """Columns that a line may have without a wrap, which could not be written over."""
    import os

    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns - 1)
    except OSError:
        return 79
