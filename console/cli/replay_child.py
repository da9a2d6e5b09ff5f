"""The replay process behind a console: in a private directory, and gone with all that it kept when the console is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from console.app.main import EndedError
from console.cli.outcomes import BAD_INPUT, CHECK_FAILED, UNREACHABLE
from engine.places import runtime_dir
from engine.sockets import Sockets

GRACE_SECONDS: Final = 3.0
"""For the process to end by itself once it was told to."""


class ReplayChild:
    """A running replay process. `sockets`: where it speaks the feed."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path) -> None:
        self._process = process
        self.sockets = Sockets(directory)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int:
        """What a command should exit with whose replay process ended by itself."""
        code = self._process.poll()
        return code if code in (BAD_INPUT, UNREACHABLE) else CHECK_FAILED

    def last_words(self) -> str:
        """What it said last, one line."""
        text = _log(self.sockets.directory).read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1].removeprefix("replay: ").removeprefix("Error: ")
        code = self._process.poll()
        return f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}, without a word"

    def check(self) -> None:
        """Raises EndedError: it has ended by itself, with what it said last."""
        if not self.alive:
            raise EndedError(f"the replay process has ended: {self.last_words()}")

    def end(self) -> None:
        """Tell it to go, and see to it."""
        self._process.terminate()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def replay_child(trace: Path, speedup_floor: float | None = None) -> Iterator[ReplayChild]:
    """A replay process for as long as the block runs, whatever way it is left. It may end before by itself: it says
    why in `last_words`."""
    directory = Path(tempfile.mkdtemp(prefix="r-", dir=runtime_dir()))
    try:
        child = ReplayChild(_start(trace, directory, speedup_floor), directory)
        try:
            yield child
        finally:
            child.end()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _start(trace: Path, directory: Path, speedup_floor: float | None) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "console.replaying", str(trace.absolute()), "--sockets", str(directory)]
    if speedup_floor is not None:
        argv += ["--speedup-floor", str(speedup_floor)]
    with _log(directory).open("ab") as log:
        return subprocess.Popen(
            argv,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            cwd=directory,  # neutral: nothing in the operator's directory may shadow ours
            stdin=subprocess.PIPE,  # ends with us, even if nothing of ours gets to run
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # ctrl+c in the terminal is the console's
        )


def _log(directory: Path) -> Path:
    return directory / "log"
