"""A `specdeck web` behind a console: read-only, on a free port of loopback, gone when the console is."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from console.app.main import ServingError
from engine.places import data_dir

PATIENCE_SECONDS: Final = 20.0
"""For it to say its address; on a busy machine its imports alone take seconds."""
GRACE_SECONDS: Final = 10.0
"""For it to end its consoles."""


class _Answer(msgspec.Struct):
    url: str


class WebChild:
    """`arguments`: of `specdeck web`, beside those that make it ours. A `console.app.main.Serving`."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._address: str | None = None
        self._one_at_a_time = threading.Lock()

    @property
    def command(self) -> str:
        return shlex.join(["specdeck", "web", *self._arguments])

    @property
    def address(self) -> str | None:
        running = self._process is not None and self._process.poll() is None
        return self._address if running else None

    def start(self) -> str:
        with self._one_at_a_time:
            if (address := self.address) is not None:
                return address
            log = data_dir() / "logs" / "web.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._process = self._spawn(log)
                self._address = _first_line(self._process)
            except OSError as error:
                raise ServingError(f"`{self.command}` cannot be run: {error.strerror or error}") from error
            if self._address is None:
                self._end()
                raise ServingError(f"`{self.command}` did not start: {_last_words(log)}")
            return self._address

    def stop(self) -> None:
        with self._one_at_a_time:
            self._end()

    def _end(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        try:
            process.communicate(timeout=GRACE_SECONDS)  # closes its input, which it takes for our end
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def _spawn(self, log: Path) -> subprocess.Popen[bytes]:
        ours = ["--host", "127.0.0.1", "--port", "0", "--json", "--with-parent"]
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "console.cli", "web", *self._arguments, *ours],
                env={**os.environ, "PYTHONSAFEPATH": "1"},  # nothing in the operator's directory may shadow ours
                stdin=subprocess.PIPE,  # ends with us, even if nothing of ours gets to run
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,  # ctrl+c in the terminal is the console's
            )


@contextmanager
def web_child(*arguments: str) -> Iterator[WebChild]:
    """One that may be started while the block runs, and serves no longer when it is left."""
    child = WebChild(arguments)
    try:
        yield child
    finally:
        child.stop()


def _first_line(process: subprocess.Popen[bytes]) -> str | None:
    """The address that it says, None where it ends or is silent for too long."""
    assert process.stdout is not None
    said, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while b"\n" not in said:
        if not select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        piece = os.read(process.stdout.fileno(), 4096)
        if not piece:
            return None
        said += piece
    return msgspec.json.decode(said.partition(b"\n")[0], type=_Answer).url


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("Error: ") if lines else f"it said nothing in {PATIENCE_SECONDS:g} s"
