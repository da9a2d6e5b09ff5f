"""One station per runtime directory: a lock that the kernel lets go of when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from console.statefile import read_station


class StationHeld(RuntimeError):
    """Another station runs here: says which process and with which store."""


class StationLock:
    """Raises StationHeld."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = os.open(directory / "station.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise StationHeld(self._holder()) from None

    def release(self) -> None:
        os.close(self._file)

    def _holder(self) -> str:
        held = read_station(self._directory)
        who = f"pid {held.pid}, store {held.info.store}" if held else "it is just starting"
        return (
            f"a station already runs in {self._directory} ({who}): "
            "`specdeck attach` opens the console on it, `specdeck stop` ends it"
        )
