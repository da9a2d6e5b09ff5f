"""Processes in sessions of their own: adopted by a later owner, ended with everything they forked."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from engine import sessions
from engine.process import Backoff, ManagedProcess, ProcessError, ProcessState

FAMILY = """
import os, signal, subprocess, sys, time
if sys.argv[1:] == ["stubborn"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = "import time; print('grandchild', flush=True); time.sleep(600)"
child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
subprocess.Popen([sys.executable, "-c", child])
print("started", flush=True)
time.sleep(600)
"""
"""A leader with a child and a grandchild, none of which watches its parent: like vLLM's three processes."""


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECDECK_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path


Start = Callable[..., ManagedProcess]


@pytest.fixture
def start(places: Path) -> Iterator[Start]:
    """Starts managed processes and ends them after the test."""
    started: list[ManagedProcess] = []

    def start(script: str = FAMILY, *arguments: str, role: str = "role") -> ManagedProcess:
        argv = [sys.executable, "-c", script, *arguments]
        process = ManagedProcess.start(
            argv, dict(os.environ), places / "logs" / f"{role}.log", places / "run" / f"{role}.json", {"port": 8000}
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate_group(grace_seconds=0)


def whole(process: ManagedProcess) -> bool:
    return len(process.members()) == 2 and "grandchild" in process.log_path.read_text()


def test_a_started_process_leads_its_own_session_and_writes_to_its_log(start: Start, places: Path) -> None:
    process = start()
    wait_for(lambda: whole(process))
    assert process.alive()
    assert os.getsid(process.pid) == process.pid
    assert Path(f"/proc/{process.pid}/cwd").resolve() == (places / "run").resolve()


def test_the_state_file_is_private_complete_and_readable_by_others(start: Start) -> None:
    process = start()
    assert stat.S_IMODE(process.state_file.stat().st_mode) == 0o600
    state = json.loads(process.state_file.read_text())
    assert state["pid"] == process.pid
    assert state["argv"][0] == sys.executable
    assert state["log"] == str(process.log_path)
    assert state["extra"] == {"port": 8000}
    assert abs(state["start_time"] - state["started"]) < 30
    assert [path.name for path in process.state_file.parent.iterdir()] == ["role.json"]


def test_a_later_owner_adopts_the_living_process_and_ends_all_of_it(start: Start) -> None:
    process = start()
    wait_for(lambda: whole(process))
    adopted = ManagedProcess.adopt(process.state_file)
    assert adopted is not None
    assert (adopted.pid, adopted.extra) == (process.pid, {"port": 8000})
    adopted.terminate_group(grace_seconds=5)
    assert list(sessions.session_members(process.pid)) == []
    assert not process.state_file.exists()
    assert not process.alive()


def test_members_that_outlive_a_killed_leader_are_found_and_ended(start: Start) -> None:
    process = start()
    wait_for(lambda: whole(process))
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: not process.alive())
    assert process.exit_code() == -signal.SIGKILL
    assert len(process.leftovers()) == 2

    later = ManagedProcess.recall(process.state_file)
    assert later is not None
    assert ManagedProcess.adopt(process.state_file) is None
    with pytest.raises(ProcessError, match="adopt or end them first"):
        start()
    later.terminate_group(grace_seconds=0)
    assert later.leftovers() == []
    assert list(sessions.session_members(process.pid)) == []
    start()


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(start: Start) -> None:
    process = start(FAMILY, "stubborn")
    wait_for(lambda: whole(process))
    process.terminate_group(grace_seconds=0.2)
    assert list(sessions.session_members(process.pid)) == []


def test_a_remembered_member_that_dies_alone_is_noticed(start: Start) -> None:
    process = start()
    wait_for(lambda: whole(process))
    process.remember_members()
    adopted = ManagedProcess.adopt(process.state_file)
    assert adopted is not None
    assert adopted.missing_members() == []
    victim = process.members()[-1].pid
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim in adopted.missing_members())
    assert process.alive()


def test_members_are_remembered_by_name_so_that_passing_helpers_are_not_missed(start: Start) -> None:
    process = start()
    wait_for(lambda: whole(process))
    process.remember_members(named="no-such-name")
    assert process.state.members == []


def test_a_used_again_pid_is_neither_adopted_nor_ended(start: Start, places: Path) -> None:
    stranger = start(role="stranger")
    wait_for(lambda: whole(stranger))
    state = msgspec.structs.replace(stranger.state, start_ticks=stranger.state.start_ticks - 5)
    forged = places / "run" / "forged.json"
    forged.write_bytes(msgspec.json.encode(state))
    assert ManagedProcess.adopt(forged) is None
    process = ManagedProcess.recall(forged)
    assert process is not None
    assert process.leftovers() == []
    process.terminate_group(grace_seconds=0)
    assert stranger.alive()
    assert len(stranger.members()) == 2


def test_the_session_of_a_dead_stranger_with_our_old_pid_is_left_alone(start: Start, places: Path) -> None:
    """The pid was used again by a daemon whose leader has exited: its members write elsewhere."""
    stranger = start(role="stranger")
    wait_for(lambda: whole(stranger))
    os.kill(stranger.pid, signal.SIGKILL)
    wait_for(lambda: not stranger.alive())
    state = msgspec.structs.replace(stranger.state, log=str(places / "logs" / "ours.log"))
    process = ManagedProcess(state, places / "run" / "ours.json")
    assert process.leftovers() == []
    assert len(stranger.leftovers()) == 2


def test_the_log_of_this_start_begins_where_the_last_one_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys, time; print(sys.argv[1], flush=True); time.sleep(600)"
    first = start(script, "first")
    wait_for(lambda: "first" in first.log_text())
    first.terminate_group()
    second = start(script, "second")
    wait_for(lambda: second.log_text() == "second\n")
    assert second.log_path.read_text() == "first\nsecond\n"
    second.terminate_group()

    monkeypatch.setattr("engine.process._LOG_LIMIT", 3)
    third = start(script, "third")
    wait_for(lambda: third.log_text() == "third\n")
    assert third.log_path.with_name("role.log.1").read_text() == "first\nsecond\n"


def test_a_broken_or_missing_state_file_adopts_nothing(places: Path) -> None:
    path = places / "run" / "role.json"
    assert ManagedProcess.recall(path) is None
    path.write_text('{"pid": 1')
    assert ManagedProcess.adopt(path) is None


def test_a_program_that_is_not_there_is_an_error_with_its_name(places: Path) -> None:
    with pytest.raises(ProcessError, match="gateway: /no/such/program cannot be run"):
        ManagedProcess.start(["/no/such/program"], {}, places / "log", places / "run" / "gateway.json")


def test_extra_values_are_kept_across_adoption(start: Start) -> None:
    process = start()
    process.update_extra(model="m@1")
    adopted = ManagedProcess.adopt(process.state_file)
    assert adopted is not None
    assert adopted.extra == {"port": 8000, "model": "m@1"}


def test_a_process_survives_the_one_that_started_it(places: Path) -> None:
    """As the engine survives a station: the starter is killed, a later one adopts."""
    script = (
        "import os, sys, time; from pathlib import Path; from engine.process import ManagedProcess\n"
        "ManagedProcess.start([sys.executable, '-c', 'import time; time.sleep(600)'], dict(os.environ),"
        " Path(sys.argv[1]) / 'log', Path(sys.argv[1]) / 'run' / 'role.json')\n"
        "print('up', flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, str(places)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "up\n"
    starter.kill()
    starter.wait()
    starter.stdout.close()
    adopted = ManagedProcess.adopt(places / "run" / "role.json")
    assert adopted is not None
    adopted.terminate_group(grace_seconds=5)
    assert not adopted.alive()


def test_names_with_spaces_and_parentheses_do_not_confuse_proc(start: Start) -> None:
    script = "import time; open('/proc/self/comm','w').write('a) R (b'); print('named', flush=True); time.sleep(600)"
    process = start(script)
    wait_for(lambda: "named" in process.log_path.read_text())
    read = sessions.read_stat(process.pid)
    assert read is not None
    assert (read.name, read.session) == ("a) R (b", process.pid)


def test_restart_pauses_double_up_to_a_minute_and_begin_again_after_five_minutes_of_health() -> None:
    backoff = Backoff()
    assert [backoff.failed(now) for now in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.healthy(100.0)
    assert backoff.failed(150.0) == 60
    backoff.healthy(200.0)
    backoff.healthy(501.0)
    assert backoff.failures == 0
    assert backoff.failed(502.0) == 1


def test_health_that_was_only_said_once_counts_until_the_failure() -> None:
    backoff = Backoff()
    backoff.failed(0.0)
    backoff.failed(1.0)
    backoff.healthy(10.0)
    assert backoff.failed(400.0) == 1


def test_state_decodes_without_optional_fields() -> None:
    state = msgspec.json.decode(
        b'{"pid":1,"start_time":1.0,"start_ticks":5,"argv":[],"log":"l","started":1.0}', type=ProcessState
    )
    assert (state.members, state.extra) == ([], {})
