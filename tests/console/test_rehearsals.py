"""A rehearsal as the station watches it: one at a time, its end told whatever it is, gone without a word is failed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.feed.messages import CalibrationView, RehearsalView, UnconfirmedView
from console.station.rehearsal_acts import hindrance
from console.station.rehearsal_process import Refused
from console.station.rehearsals import KEPT_SECONDS, SILENT_SECONDS, Rehearsals
from engine.records import PolicyMode
from tests.store.builders import engine

SLEEPS = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
SAYS = [sys.executable, "-S", "-c", "import sys; print('error: no phase in it'); sys.exit(2)"]
DEAF = [
    sys.executable, "-S", "-c",
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
]  # fmt: skip


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0.0
        self.told: list[str] = []
        self.hindrance: str | None = None

    def rehearsals(self, command: list[str] = SLEEPS) -> Rehearsals:
        return Rehearsals(
            self.folder, self.folder / "rehearsal.json", lambda kind, text: self.told.append(text),
            lambda: self.hindrance, command=command, clock=lambda: self.now,
        )  # fmt: skip

    @staticmethod
    def look(rehearsals: Rehearsals) -> RehearsalView | None:
        asyncio.run(rehearsals.look())
        return rehearsals.view()


@pytest.fixture
def watched(place: Path) -> Iterator[Watched]:
    from console.cli.leftovers import end_all

    (place / "run").mkdir(mode=0o700)
    yield Watched(place / "run")
    end_all()


def progress(pid: int | None, id: str = "r1", **more: Any) -> RehearsalView:
    return RehearsalView(**({"id": id, "plan": "quick", "state": "running", "pid": pid} | more))


@contextlib.contextmanager
def from_a_shell() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEPS)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_that_is_started_here_is_shown_before_it_says_a_word_and_a_second_is_refused(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    view = rehearsals.start("quick")
    assert (view.state, view.plan, view.pid) == ("starting", "quick", rehearsals.pid)
    for _ in range(2):
        with pytest.raises(Refused, match="goes on already: plan quick"):
            rehearsals.start("quick")
    rehearsals.progress(progress(None))
    assert rehearsals.view() == progress(view.pid), "its process is known"
    with pytest.raises(Refused, match="goes on already: r1"):
        rehearsals.start("quick")


def test_killed_without_a_last_word_it_has_failed_and_is_shown_for_ten_minutes(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    pid = rehearsals.start("quick").pid
    assert pid is not None
    rehearsals.progress(progress(pid, pass_number=2))
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    view = watched.look(rehearsals)
    assert view is not None
    assert (view.id, view.state, view.pass_number) == ("r1", "failed", 2)
    assert "ended without a last word: SIGKILL" in view.note
    assert f"r1 failed: {view.note}" in watched.told
    watched.now += KEPT_SECONDS - 1
    assert watched.look(rehearsals) == view
    watched.now += 2
    assert watched.look(rehearsals) is None


def test_one_that_ends_at_once_says_why(watched: Watched) -> None:
    rehearsals = watched.rehearsals(SAYS)
    pid = rehearsals.start("quick").pid
    assert pid is not None
    until_gone(pid)
    view = watched.look(rehearsals)
    assert view is not None
    assert view.state == "failed"
    assert "exit code 2" in view.note
    assert "error: no phase in it" in view.note
    assert rehearsals.start("quick").state == "starting", "the next one may begin"


def test_what_was_said_last_stands_though_the_process_ends(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    pid = rehearsals.start("quick").pid
    assert pid is not None
    rehearsals.progress(progress(pid, state="over", note="3 passes"))
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    view = watched.look(rehearsals)
    assert view is not None
    assert (view.state, view.note) == ("over", "3 passes")


def test_one_from_a_shell_is_watched_too(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    with from_a_shell() as process:
        rehearsals.progress(progress(process.pid))
        with pytest.raises(Refused, match="goes on already: r1"):
            rehearsals.start("quick")
        with pytest.raises(Refused, match="another rehearsal goes on: r1"):
            rehearsals.progress(progress(os.getpid(), "r2"))
        assert watched.look(rehearsals) == progress(process.pid)
    view = watched.look(rehearsals)
    assert view is not None
    assert (view.state, view.note) == ("failed", f"its process (pid {process.pid}) is gone")


def test_silent_for_long_it_has_failed_until_it_is_heard_again(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    with from_a_shell() as process:
        rehearsals.progress(progress(process.pid))
        watched.now += SILENT_SECONDS - 1
        assert watched.look(rehearsals) == progress(process.pid)
        watched.now += 2
        view = watched.look(rehearsals)
        assert view is not None
        assert (view.state, f"pid {process.pid} still runs" in view.note) == ("failed", True)
        with pytest.raises(Refused, match="goes on already"):
            rehearsals.start("quick")
        rehearsals.progress(progress(process.pid, pass_number=2))
        assert watched.look(rehearsals) == progress(process.pid, pass_number=2)


def test_an_interrupt_reaches_the_process_and_nobody_else(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    with pytest.raises(Refused, match="no rehearsal goes on"):
        rehearsals.interrupt(None)
    with from_a_shell() as process:
        rehearsals.progress(progress(process.pid))
        with pytest.raises(Refused, match="r2 does not go on: r1 does"):
            rehearsals.interrupt("r2")
        assert process.poll() is None
        assert "gives the policy back" in rehearsals.interrupt("r1").note
        assert process.wait(20) == -signal.SIGINT
    with pytest.raises(Refused, match="can't reach it"):
        rehearsals.interrupt("r1")
    fresh = watched.rehearsals()
    with pytest.raises(Refused, match="pid 1 is no"):
        fresh.progress(progress(1))
    fresh.progress(progress(None))
    with pytest.raises(Refused, match="interrupt it there"):
        fresh.interrupt(None)


def test_a_pid_that_another_process_has_by_now_is_not_interrupted(watched: Watched) -> None:
    rehearsals = watched.rehearsals()
    with from_a_shell() as process:
        rehearsals.progress(progress(process.pid))
        rehearsals._ticks = 1
        with pytest.raises(Refused):
            rehearsals.interrupt(None)
        view = watched.look(rehearsals)
        assert view is not None
        assert view.state == "failed"
        assert process.poll() is None


def test_one_that_does_not_heed_the_end_of_the_station_is_ended(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.station.rehearsals.END_SECONDS", -1.0)
    monkeypatch.setattr("console.station.rehearsal_process.GRACE_SECONDS", 0.1)
    rehearsals = watched.rehearsals(DEAF)
    pid = rehearsals.start("quick").pid
    assert pid is not None
    asyncio.run(rehearsals.end())
    assert not Path(f"/proc/{pid}").exists()


def test_a_new_station_knows_the_one_that_a_station_before_it_started(watched: Watched) -> None:
    pid = watched.rehearsals().start("quick").pid
    rehearsals = watched.rehearsals()
    view = rehearsals.view()
    assert view is not None
    assert (view.state, view.plan, view.pid) == ("starting", "quick", pid)
    with pytest.raises(Refused):
        rehearsals.start("quick")


@pytest.mark.parametrize(
    ("plan", "words"),
    [("--help", "neither a name"), ("day.toml", "neither a name"), ("../quick", "neither"), ("", "neither"),
     ("/nowhere/day.toml", "no file"), ("/tmp", "no file")],
)  # fmt: skip
def test_what_can_be_no_plan_is_refused(watched: Watched, plan: str, words: str) -> None:
    rehearsals = watched.rehearsals()
    with pytest.raises(Refused, match=words):
        rehearsals.start(plan)
    assert (rehearsals.view(), rehearsals.pid) == (None, None)


RUNS = engine()
MEASURED = CalibrationView(engine="e0", state="running")
WAITS = UnconfirmedView(confirm_by=1.0, reverts_to=PolicyMode(mode="off"))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((None, None, None, None), "no engine of its own"),
        (("starting", None, None, None), "the engine is starting"),
        (("serving", engine(max_k=0), None, None), "no drafter"),
        (("serving", RUNS, MEASURED, None), "being calibrated"),
        (("serving", RUNS, None, WAITS), "specdeck policy confirm"),
    ],
)
def test_why_none_may_begin_is_said(watched: Watched, facts: Any, words: str) -> None:
    watched.hindrance = hindrance(*facts)
    rehearsals = watched.rehearsals()
    with pytest.raises(Refused, match=words):
        rehearsals.start("quick")
    assert hindrance("serving", RUNS, CalibrationView(engine="e0", state="done"), None) is None
