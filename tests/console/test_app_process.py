"""The console as a process: what it loads, and that it never outlives its terminal nor leaves one in disorder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from console.app.frame.terminal import NoTerminalError, require_terminal
from tests.console.pseudo_terminal import DEADLINE, Terminal, modes
from tests.console.station_harness import living

LEAVES_SECONDS: Final = 2.0
"""However it is ended, it is gone by then."""

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
import console.app.commands.page, console.app.exporting.dialog
import console.app.traces.screen, console.app.traces.desk, console.app.traces.record_dialog
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
    """A console on a pseudo terminal of its own, on the sockets in a folder. `under`: what starts it, as a shell."""

    def __init__(self, directory: Path, *, script: str = CONSOLE, under: Sequence[str] = (), **options: Any) -> None:
        super().__init__([*under, sys.executable, "-c", script, str(directory)], **options)
        self.directory = directory

    def outcome(self, seconds: float = DEADLINE) -> str:
        assert self.ended(seconds) == 0
        return (self.directory / "outcome").read_text()


Start = Callable[..., Console]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a console that no station answers, and waits for its first picture."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory, ExitStack() as ending:

        def begin(wait: bytes = b"Connecting", **options: Any) -> Console:
            console = Console(Path(directory), **options)
            ending.callback(console.end)
            console.read_until(wait)
            return console

        yield begin


def leave(console: Console) -> None:
    console.type("q")
    console.read_until(b"detach")
    console.type("d")


def by(signal_number: int) -> Callable[[Console], None]:
    return lambda console: console.process.send_signal(signal_number)


BREAKS = CONSOLE.replace(
    "import run_console",
    "import run_console, SpecdeckApp\n"
    "def breaks(self): raise RuntimeError('a [fault]')\n"
    "SpecdeckApp.action_theme = breaks",
)


@pytest.mark.parametrize(
    ("end", "outcome", "script"),
    [
        pytest.param(leave, "detach", CONSOLE, id="by key"),
        pytest.param(by(signal.SIGTERM), "detach", CONSOLE, id="SIGTERM"),
        pytest.param(by(signal.SIGINT), "detach", CONSOLE, id="SIGINT"),
        pytest.param(by(signal.SIGHUP), "lost_tty", CONSOLE, id="SIGHUP with a terminal that lives"),
        pytest.param(lambda console: console.type("t"), "failed", BREAKS, id="a fault"),
    ],
)
def test_it_leaves_the_terminal_as_it_found_it(start: Start, end: Any, outcome: str, script: str) -> None:
    console = start(script=script)
    assert not console.as_found
    end(console)
    assert console.outcome(LEAVES_SECONDS) == outcome
    assert console.as_found, (modes(console.output), console.output[-500:])


def test_a_terminal_that_goes_away_ends_the_console(start: Start) -> None:
    console = start()
    console.hang_up()
    assert console.outcome(LEAVES_SECONDS) == "lost_tty"


def test_it_does_not_outlive_the_shell_that_is_killed(start: Start) -> None:
    console = start(under=("sh", "-c", '"$@"; true', "sh"))
    (child,) = psutil.Process(console.process.pid).children()
    console.process.kill()
    console.process.wait()
    console.hang_up()
    psutil.wait_procs([child], LEAVES_SECONDS)
    assert not living([child.pid])


def test_as_a_job_it_gives_the_terminal_back_and_fg_brings_it_up_again(start: Start) -> None:
    console = start(under=("sh", "-c", 'set -m; "$@"; echo the shell; read line; fg; true', "sh"))
    console.type("\x1a")
    console.read_until(b"the shell")
    assert console.as_found
    stopped = len(console.output)
    console.type("\n")
    console.read_until(b"Connecting", stopped)
    assert not console.as_found
    leave(console)
    assert console.outcome() == "detach"
    assert console.as_found


def test_stopped_from_outside_it_paints_anew_and_still_knows_what_the_terminal_was(start: Start) -> None:
    console = start()
    console.type("\x1a")
    console.read_until_shown("No shell would", 10.0)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        console.process.send_signal(number)
    stopped = len(console.output)
    console.read_until(b"Connecting", stopped)
    leave(console)
    assert console.outcome() == "detach"
    assert console.as_found


@pytest.mark.parametrize(
    ("under", "environment"),
    [
        pytest.param((), {"TERM": None, "COLORTERM": None}, id="TERM unset"),
        pytest.param(
            ("sh", "-c", 'exec "$@" >&-', "sh"), {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, id="C, no stdout"
        ),
    ],
)
def test_poor_surroundings_do_not_keep_it_from_drawing(start: Start, under: Any, environment: Any) -> None:
    console = start(under=under, environment={**environment, "PYTHONUTF8": "0"})
    leave(console)
    console.read_until_shown("keeps serving")
    assert "╭" in console.picture, "box lines in UTF-8, whatever the locale"
    assert console.outcome() == "detach"


def test_no_size_nor_a_storm_of_sizes_breaks_it(start: Start) -> None:
    console = start(size=(0, 0), wait=b"")
    for number in range(60):
        console.resize(1 + number * 13 % 220, 1 + number * 7 % 60)
        console.read(0.005)
    console.resize(90, 20)
    console.read_until_shown("Connecting to the station")
    leave(console)
    assert console.outcome() == "detach"


def test_a_terminal_that_can_not_place_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "isatty", lambda fd: True)
        patch.setenv("TERM", "dumb")
        with pytest.raises(NoTerminalError, match=r"TERM=dumb.*headless commands"):
            require_terminal()
