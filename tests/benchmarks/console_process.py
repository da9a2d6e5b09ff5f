"""A console process on a pseudo terminal that is read all the time: its CPU time and the bytes that it writes."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import psutil

from tests.console.pseudo_terminal import Terminal

CONSOLE = """
import sys
from pathlib import Path
from console.app.main import run_console
run_console(Path(sys.argv[1]) / "feed", Path(sys.argv[1]) / "snapshots", read_only=True)
"""


class Cost(NamedTuple):
    """Shares of a core, and bytes a second."""

    cpu: float
    written: float


class ConsoleProcess:
    def __init__(self, sockets: Path, size: tuple[int, int] = (120, 36)) -> None:
        self.terminal = Terminal(
            [sys.executable, "-c", CONSOLE, str(sockets)], size=size, environment={"COLORTERM": "truecolor"}
        )
        self._process = psutil.Process(self.terminal.process.pid)
        self._over = threading.Event()
        self._read = 0
        self._reader = threading.Thread(target=self._take, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._reader.join()
        self.terminal.end()

    def type(self, keys: str) -> None:
        self.terminal.type(keys)

    def cost(self, seconds: float) -> Cost:
        """Of the next `seconds`."""
        cpu, read, began = cpu_seconds(self._process), self._read, time.perf_counter()
        time.sleep(seconds)
        took = time.perf_counter() - began
        return Cost((cpu_seconds(self._process) - cpu) / took, (self._read - read) / took)

    def _take(self) -> None:
        while not self._over.is_set():
            self.terminal.read(0.2)
            self._read += len(self.terminal.output)
            self.terminal.output = b""


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
