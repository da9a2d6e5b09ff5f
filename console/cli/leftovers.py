"""What a station that was killed has left serving, by the state files of the runtime directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from console.cli.outcomes import CheckFailed, say
from engine.places import runtime_dir
from engine.process import ManagedProcess, ProcessError

_GRACE_SECONDS = 12.0


def living() -> dict[str, int]:
    """Role → pid of every process here that still runs (its own or any of its session), the station's included."""
    found: dict[str, int] = {}
    for role, process in _all().items():
        if process.alive():
            found[role] = process.pid
        elif rest := process.leftovers():
            found[role] = rest[0].pid
    return found


def end_all(tell: Callable[[str], None] = say) -> list[str]:
    """End them all: first the station, so that it starts nothing anew. Returns the roles that were ended.

    Raises:
        CheckFailed: one could not be ended.
    """
    ended = []
    for role, process in sorted(_all().items(), key=lambda item: item[0] != "station"):
        if not process.alive() and not process.leftovers():
            continue
        tell(f"ending {role} (pid {process.pid})")
        try:
            process.terminate_group(_GRACE_SECONDS)
        except ProcessError as error:
            raise CheckFailed(str(error)) from error
        ended.append(role)
    return ended


def _all() -> dict[str, ManagedProcess]:
    directory: Path = runtime_dir()
    roles = {}
    for path in sorted(directory.glob("*.json")):
        process = ManagedProcess.recall(path)
        if process is not None:
            roles[path.stem] = process
    return roles
