"""`specdeck replay` on a terminal: it opens its own replay process, and leaves nothing of it behind."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from console.cli.replay import replay
from engine.places import runtime_dir
from tests.console.pseudo_terminal import DEADLINE, LEFT_CLEAN, Terminal

DEMO = Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst"


@contextmanager
def shown(*arguments: str) -> Iterator[Terminal]:
    terminal = Terminal([sys.executable, "-m", "console.cli", "replay", *arguments])
    try:
        yield terminal
    finally:
        terminal.end()


def children(terminal: Terminal) -> list[psutil.Process]:
    return psutil.Process(terminal.process.pid).children()


def assert_nothing_is_left(of: list[psutil.Process]) -> None:
    deadline = time.monotonic() + DEADLINE
    while any(process.is_running() for process in of):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not list(runtime_dir().glob("r-*"))


def test_it_shows_the_trace_and_leaves_without_a_question() -> None:
    with shown(str(DEMO), "--speed", "max", "--at", "100%") as terminal:
        terminal.read_until(b"creative")
        processes = children(terminal)
        assert processes
        terminal.type("q")
        terminal.read_until(LEFT_CLEAN)
        assert terminal.process.wait(DEADLINE) == 0
        assert_nothing_is_left(processes)


def test_a_file_that_is_no_trace_is_said_in_one_line_after_the_screen_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("milk, bread\n")
    with shown(str(path)) as terminal:
        terminal.read_until(LEFT_CLEAN)
        terminal.read_until(b"notes.jsonl:1: not a JSON object")
        assert terminal.process.wait(DEADLINE) == 2
        said = terminal.output.rpartition(LEFT_CLEAN)[2].decode()
        assert "Traceback" not in said
        assert_nothing_is_left([])


def test_a_terminal_that_goes_away_takes_the_replay_process_along() -> None:
    with shown(str(DEMO)) as terminal:
        terminal.read_until(b"Opening the trace")
        processes = children(terminal)
        assert processes
        terminal.hang_up()
        terminal.process.wait(DEADLINE)
        assert_nothing_is_left(processes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--speed", "5000"], "0.1 to 1000 times as fast, or max"),
        (["--speed", "fast"], "write max, or a number"),
        (["--at", "soon"], "understood: 14:05"),
        (["--json"], "--headless"),
        (["--headless", "--at", "40%"], "--at is for the console"),
        ([], "--headless"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_way_out(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(replay, [str(DEMO), *arguments])
    assert result.exit_code == 2
    assert said in result.output
