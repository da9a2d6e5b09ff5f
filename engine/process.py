"""A process of ours that outlives whoever started it: engine and gateway, each in a session of its own.

What is known of it stands in a state file, so a new station can adopt it. A process is ours and alive if its pid exists
with the start written there (pids are used again). Its whole session belongs to it: vLLM's API server has an EngineCore
and workers under it which survive its death, re-parented, and are found by their session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from engine import sessions
from engine.places import runtime_dir
from engine.sessions import Stat

_TRACKER: Final = "multiprocessing.resource_tracker"
_TRACKER_PATIENCE: Final = 2.0
"""Seconds for Python's resource trackers, which unlink shared memory once the processes they serve are gone."""

_LOG_LIMIT: Final = 20 * 1024 * 1024
"""Bytes after which a log begins anew at the next start; the one before is kept as `.1`."""

_KILL_PATIENCE: Final = 5.0
"""Seconds in which a process sent SIGKILL must be gone."""


class ProcessError(RuntimeError):
    """A process that could not be started or ended: says which."""


class ProcessState(msgspec.Struct, frozen=True):
    """The state file. `members` are those of its session that must live: (pid, start in clock ticks)."""

    pid: int
    start_time: float
    """psutil's `create_time`, Unix seconds: for readers. The identity is `start_ticks`, which no clock step moves."""
    start_ticks: int
    argv: list[str]
    log: str
    started: float
    log_offset: int = 0
    """Where in the log this start begins, bytes: earlier starts stand before it."""
    members: list[tuple[int, int]] = []
    extra: dict[str, Any] = {}


class ManagedProcess:
    """A started or adopted process and its session. All methods are quick except `terminate_group`."""

    def __init__(self, state: ProcessState, state_file: Path, child: subprocess.Popen[bytes] | None = None) -> None:
        self.state = state
        self.state_file = state_file
        self._child = child

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str],
        log_path: Path,
        state_file: Path,
        extra: dict[str, Any] | None = None,
    ) -> ManagedProcess:
        """Start `argv` in a new session, its output appended to `log_path`, and write the state file.

        Raises:
            ProcessError: `state_file` names a process that still lives, or the program cannot be run.
        """
        before = cls.recall(state_file)
        if before is not None and (before.alive() or before.leftovers()):
            raise ProcessError(
                f"{state_file.stem}: pid {before.pid} or processes it left still run; adopt or end them first"
            )
        log_path = log_path.absolute()
        log_path.parent.mkdir(parents=True, exist_ok=True)
        offset = _roll(log_path)
        child = _spawn(argv, env, log_path, state_file.stem)
        state = ProcessState(
            pid=child.pid,
            start_time=_create_time(child.pid),
            start_ticks=sessions.start_ticks(child.pid) or 0,  # it cannot be gone: only this process reaps it
            argv=list(argv),
            log=str(log_path.resolve()),
            started=time.time(),
            log_offset=offset,
            extra=extra or {},
        )
        process = cls(state, state_file, child)
        process._write()
        return process

    @classmethod
    def adopt(cls, state_file: Path) -> ManagedProcess | None:
        """The living process of `state_file`, or None. What a dead one left behind is `recall(…).leftovers()`."""
        process = cls.recall(state_file)
        return process if process is not None and process.alive() else None

    @classmethod
    def recall(cls, state_file: Path) -> ManagedProcess | None:
        """The process of `state_file` whether it lives or not; None without a readable state file."""
        try:
            state = msgspec.json.decode(state_file.read_bytes(), type=ProcessState)
        except (OSError, msgspec.DecodeError):
            return None
        return cls(state, state_file)

    @property
    def pid(self) -> int:
        return self.state.pid

    @property
    def extra(self) -> dict[str, Any]:
        return self.state.extra

    @property
    def log_path(self) -> Path:
        return Path(self.state.log)

    def log_text(self, longest: int = 1024 * 1024) -> str:
        """What it has written since this start, at most the last `longest` bytes."""
        try:
            with self.log_path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(self.state.log_offset if self.state.log_offset <= size else 0, size - longest))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def alive(self) -> bool:
        """Whether the process itself runs. For its children see `missing_members`."""
        if self._child is not None and self._child.poll() is not None:
            return False
        return _lives(self.state.pid, self.state.start_ticks)

    def exit_code(self) -> int | None:
        """Its exit code (negative: the signal), None while it runs or when it was adopted."""
        return self._child.poll() if self._child is not None else None

    def members(self) -> list[Stat]:
        """Every living process of its session but itself, re-parented ones included.

        Linux gives no pid away while a session of that number has members. So once the pid has another owner the
        session was ours no longer; and when nobody has it, what counts is who still writes to our log.
        """
        holder = sessions.start_ticks(self.state.pid)
        if holder is not None and holder != self.state.start_ticks:
            return []
        leader_lives = self.alive()
        return [
            stat
            for stat in sessions.session_members(self.state.pid)
            if stat.pid != self.state.pid
            and stat.start_ticks >= self.state.start_ticks
            and (leader_lives or sessions.writes_to(stat.pid, self.log_path))
        ]

    def remember_members(self, named: str = "") -> None:
        """Note the present members as those that must live; to be called once the process is healthy.

        Args:
            named: how their process names begin, so that a passing helper (a compiler) is not missed later.
        """
        lasting = [stat for stat in self.members() if stat.name.startswith(named) and not _is_tracker(stat.pid)]
        self.state = msgspec.structs.replace(self.state, members=[(stat.pid, stat.start_ticks) for stat in lasting])
        self._write()

    def missing_members(self) -> list[int]:
        """Pids of remembered members that died: an EngineCore or worker may die while the API server lives on."""
        return [pid for pid, ticks in self.state.members if not _lives(pid, ticks)]

    def leftovers(self) -> list[Stat]:
        """Members that outlived the process itself; empty while it runs."""
        return [] if self.alive() else self.members()

    def update_extra(self, **values: Any) -> None:
        """Set keys of the state file's `extra`."""
        self.state = msgspec.structs.replace(self.state, extra={**self.state.extra, **values})
        self._write()

    def terminate_group(self, grace_seconds: float = 10.0) -> None:
        """End the process and its whole session, then remove the state file. Blocks; all is gone when it returns.

        SIGTERM goes to the process alone, which may end its children in order; after `grace_seconds` SIGKILL goes to
        all that is left of the session.

        Raises:
            ProcessError: something survived SIGKILL (a process stuck in the kernel).
        """
        if self.alive():
            _send(self.state.pid, signal.SIGTERM)
            self._wait_gone(grace_seconds)
        self._kill([pid for pid in self._living() if not _is_tracker(pid)], _TRACKER_PATIENCE)
        for _ in range(3):  # in rounds: a member may have forked while it was being killed
            self._kill(self._living(), _KILL_PATIENCE)
        rest = self._living()
        if rest:
            raise ProcessError(f"{self.state_file.stem}: pids {', '.join(map(str, rest))} survived SIGKILL")
        self.state_file.unlink(missing_ok=True)

    def _living(self) -> list[int]:
        """Pids of the session, the process itself included."""
        own = [self.state.pid] if self.alive() else []
        return own + [stat.pid for stat in self.members()]

    def _kill(self, pids: list[int], patience: float) -> None:
        """SIGKILL to `pids`, then wait until the whole session is gone, at most `patience` seconds."""
        for pid in pids:
            _send(pid, signal.SIGKILL)
        self._wait_gone(patience)

    def _wait_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._living() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _write(self) -> None:
        """Replace the state file in one step; only its owner may read it (argv can hold what others should not see)."""
        draft = self.state_file.with_name(f".{self.state_file.name}.{os.getpid()}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self.state)) + b"\n")
        draft.replace(self.state_file)


class Backoff:
    """Pauses before restarts: 1, 2, 4 … `longest` seconds, beginning again after `reset_after` seconds of health.

    Times come from the caller (any monotonic clock), so it needs no clock of its own.
    """

    def __init__(self, first: float = 1.0, longest: float = 60.0, reset_after: float = 300.0) -> None:
        self._first = first
        self._longest = longest
        self._reset_after = reset_after
        self._failures = 0
        self._healthy_since: float | None = None

    @property
    def failures(self) -> int:
        """Failures in a row, as far as no stretch of health has wiped them out."""
        return self._failures

    def healthy(self, now: float) -> None:
        """Say that the process is healthy at `now`; may be said again and again."""
        if self._healthy_since is None:
            self._healthy_since = now
        if now - self._healthy_since >= self._reset_after:
            self._failures = 0

    def failed(self, now: float) -> float:
        """Say that it failed at `now`; returns the seconds to wait before the next start."""
        if self._healthy_since is not None:
            self.healthy(now)
        self._healthy_since = None
        pause = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return pause


def _spawn(argv: Sequence[str], env: Mapping[str, str], log_path: Path, role: str) -> subprocess.Popen[bytes]:
    with log_path.open("ab") as log:
        try:
            return subprocess.Popen(
                list(argv),
                env={**env, "PYTHONSAFEPATH": "1"},
                cwd=runtime_dir(),  # neutral: nothing in the operator's directory may shadow ours, or be kept busy
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ProcessError(f"{role}: {argv[0]} cannot be run: {error}") from error


def _roll(log_path: Path) -> int:
    """Set a log aside that has grown too long; returns the size of the one to write to."""
    try:
        size = log_path.stat().st_size
    except OSError:
        return 0
    if size <= _LOG_LIMIT:
        return size
    log_path.replace(log_path.with_name(log_path.name + ".1"))
    return 0


def _create_time(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return time.time()


def _lives(pid: int, ticks: int) -> bool:
    """Whether `pid` runs and is the process that started at `ticks`."""
    stat = sessions.read_stat(pid)
    return stat is not None and stat.start_ticks == ticks


def _is_tracker(pid: int) -> bool:
    """Python's resource tracker ends by itself after those it serves, and cleans up after them."""
    return any(_TRACKER in argument for argument in sessions.command_line(pid))


def _send(pid: int, what: signal.Signals) -> None:
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise ProcessError(f"pid {pid} belongs to somebody else: {error}") from error
