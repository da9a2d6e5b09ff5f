"""The console as a process: what it loads, and that it never outlives its terminal nor leaves one in disorder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.pseudo_terminal import DEADLINE, LEFT_CLEAN, Terminal

NOT_IN_THE_CONSOLE = (
    "vllm", "torch", "transformers", "duckdb", "numpy", "scipy", "pyarrow", "plotext", "httpx", "starlette", "aiohttp",
    "console.web", "console.station", "console.gateway", "store.ingest", "store.database",
)  # fmt: skip

CONSOLE = """
import sys
from pathlib import Path
from console.app.main import run_console
outcome = run_console(Path(sys.argv[1]) / "feed", Path(sys.argv[1]) / "snapshots")
Path(sys.argv[1], "outcome").write_text(outcome.value)
"""


def test_the_console_loads_neither_engine_nor_database() -> None:
    script = f"""
import sys
import console.app.main, console.app.engine.screen, console.app.frame.dialogs, console.app.frame.pages
import console.app.policy.screen, console.app.policy.schedule_dialog, engine.policy.raising
import console.app.replay.go_dialog, console.app.replay.what_if_dialog
import console.app.map.screen, console.app.map.explanation, console.app.rehearsal.dialog
import console.app.frame.web_dialog
loaded = [name for name in {NOT_IN_THE_CONSOLE!r} if name in sys.modules]
sys.exit(f"loaded: {{loaded}}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr


def test_without_a_terminal_it_says_what_to_do() -> None:
    script = CONSOLE.replace("outcome = run_console", "run_console")
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-c", script, directory],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
    assert done.returncode == 1
    assert "NoTerminalError" in done.stderr
    assert "headless commands" in done.stderr


class Console(Terminal):
    """A console on a pseudo terminal of its own; nothing answers at its sockets."""

    def __init__(self, directory: Path) -> None:
        super().__init__([sys.executable, "-c", CONSOLE, str(directory)])
        self.directory = directory

    def outcome(self) -> str:
        assert self.process.wait(DEADLINE) == 0
        return (self.directory / "outcome").read_text()


@pytest.fixture
def terminal() -> Iterator[Console]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        terminal = Console(Path(directory))
        terminal.read_until(b"Connecting")
        yield terminal
        terminal.end()


def test_leaving_by_key_restores_the_terminal(terminal: Console) -> None:
    os.write(terminal.master, b"q")
    terminal.read_until(b"detach")
    os.write(terminal.master, b"d")
    terminal.read_until(LEFT_CLEAN)
    assert terminal.outcome() == "detach"


def test_sigterm_restores_the_terminal_and_detaches(terminal: Console) -> None:
    terminal.process.send_signal(signal.SIGTERM)
    terminal.read_until(LEFT_CLEAN)
    assert terminal.outcome() == "detach"


def test_sighup_ends_the_console(terminal: Console) -> None:
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.outcome() == "lost_tty"


def test_a_terminal_that_goes_away_ends_the_console(terminal: Console) -> None:
    terminal.hang_up()
    assert terminal.outcome() == "lost_tty"
