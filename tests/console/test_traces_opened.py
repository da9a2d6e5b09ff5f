"""Opening a trace from a console, and coming back to the console that it was opened from."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.app.frame.terminal import WEB_DRIVER
from console.app.main import Opening, OpenTrace, Outcome, Return
from console.cli import console as console_command
from console.cli import replay_console
from console.cli.outcomes import CHECK_FAILED, OK
from console.cli.replay_console import Played, play
from tests.console.pseudo_terminal import DEADLINE, LEFT_CLEAN, Terminal

DEMO = Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst"
A, B = Path("/a.jsonl"), Path("/b.jsonl")


class Consoles:
    """Stands for the consoles that are opened one after the other: what each of them is left with, and what it was
    opened with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *left: Outcome | OpenTrace) -> None:
        self._left = iter(left)
        self.opened: list[tuple[Path | None, bool, Return | None]] = []
        self.read_only: list[bool] = []
        self._trace: Path | None = None
        monkeypatch.setattr(replay_console, "replay_child", self._child)
        monkeypatch.setattr(replay_console, "run_console", self.run)
        monkeypatch.setattr("console.app.main.run_console", self.run)
        monkeypatch.setattr(console_command, "running_station", lambda: None)

    def run(self, feed: Path, snapshots: Path, **options: Any) -> Outcome | OpenTrace:
        self.opened.append((self._trace, options.get("back", False), options.get("returned")))
        self.read_only.append(options.get("read_only", False))
        return next(self._left)

    @contextmanager
    def _child(self, trace: Path, floor: float | None) -> Iterator[Any]:
        sockets = SimpleNamespace(feed=A, snapshots=B)
        self._trace = trace
        yield SimpleNamespace(sockets=sockets, check=None, exit_code=2, last_words=lambda: f"{trace}: no trace")
        self._trace = None


def test_a_trace_is_opened_and_left_and_the_console_is_there_again_with_its_cursor_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consoles = Consoles(monkeypatch, OpenTrace(A), OpenTrace(B), Outcome.BACK, Outcome.DETACH)
    assert console_command.show("run", None) == OK
    assert consoles.opened == [
        (None, False, None), (A, True, None), (B, True, None), (None, False, Return(str(B))),
    ]  # fmt: skip


def test_one_that_can_not_be_shown_leads_back_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    consoles = Consoles(monkeypatch, OpenTrace(A), Outcome.NOTHING, Outcome.DETACH)
    assert console_command.show("run", None) == OK
    assert consoles.opened[-1] == (None, False, Return(str(A), "/a.jsonl: no trace"))


def test_from_a_replay_one_that_can_not_be_shown_leads_back_to_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    consoles = Consoles(monkeypatch, OpenTrace(B), Outcome.NOTHING, Outcome.DETACH)
    assert play(A, Opening()) == Played(Outcome.DETACH, A)
    assert consoles.opened[-1] == (A, False, Return(str(B), "/b.jsonl: no trace"))


@pytest.mark.parametrize(("read_only", "browser"), [(True, False), (False, True), (False, False)])
def test_who_may_only_look_writes_no_files_from_a_replay_either(
    monkeypatch: pytest.MonkeyPatch, read_only: bool, browser: bool
) -> None:
    if browser:  # `specdeck web --replay`, which promises that nothing can be changed and may ask for no token
        monkeypatch.setenv("TEXTUAL_DRIVER", WEB_DRIVER)
    consoles = Consoles(monkeypatch, OpenTrace(A), Outcome.BACK, Outcome.DETACH)
    assert console_command.show("attach", None, read_only=read_only) == OK
    assert consoles.opened[1][0] == A
    assert consoles.read_only[1] == (read_only or browser)


def test_a_station_that_dies_while_a_trace_is_shown_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, again = threading.Event(), threading.Event()

    def revive() -> str | None:
        (again if asked.is_set() else asked).set()
        raise OSError("not even that breaks off the watch")

    def shown(*_: Any, **options: Any) -> Outcome:
        assert again.wait(30)
        return Outcome.BACK

    Consoles(monkeypatch, OpenTrace(A), Outcome.DETACH)
    monkeypatch.setattr(replay_console, "run_console", shown)
    monkeypatch.setattr(console_command, "REVIVE_SECONDS", 0.01)
    assert console_command.show("run", revive) == OK
    assert "station-watch" not in {thread.name for thread in threading.enumerate()}


def test_where_no_replay_can_be_started_the_console_is_there_again_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(trace: Path, floor: float | None) -> Any:
        raise OSError(28, "No space left on device")

    consoles = Consoles(monkeypatch, OpenTrace(A), Outcome.DETACH)
    monkeypatch.setattr(replay_console, "replay_child", full)
    assert console_command.show("run", None) == OK
    why = "no replay can be started here: No space left on device"
    assert consoles.opened[-1] == (None, False, Return(str(A), why))


@pytest.mark.parametrize(
    ("left", "code"),
    [(Outcome.LOST_TTY, OK), (Outcome.DETACH, OK), (Outcome.FAILED, CHECK_FAILED)],
    ids=["lost-tty", "sigterm", "failed"],
)
def test_a_replay_that_ends_otherwise_brings_no_console_back(
    monkeypatch: pytest.MonkeyPatch, left: Outcome, code: int
) -> None:
    consoles = Consoles(monkeypatch, OpenTrace(A), left)
    assert console_command.show("run", None) == code
    assert len(consoles.opened) == 2


def test_on_a_terminal_another_trace_takes_the_place_of_the_one_that_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real processes: the first is left, its terminal given back, the second opened and left."""
    monkeypatch.setenv("SPECDECK_DATA_DIR", str(tmp_path))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "second.jsonl.zst").write_bytes(DEMO.read_bytes())
    terminal = Terminal([sys.executable, "-m", "console.cli", "replay", str(DEMO)])
    try:
        terminal.read_until(b"REPLAY")
        terminal.type("6")
        terminal.read_until(b"second.jsonl.zst")
        terminal.type("\r")
        terminal.read_until(LEFT_CLEAN)
        terminal.output = b""
        terminal.read_until(b"REPLAY")
        terminal.type("q")
        terminal.read_until(LEFT_CLEAN)
        assert terminal.process.wait(DEADLINE) == 0
        assert b"Traceback" not in terminal.output
    finally:
        terminal.end()
