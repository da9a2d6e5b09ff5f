"""Starts a station in the background and looks after it as long as the command that started it runs."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

import msgspec

from console.cli.outcomes import Unreachable
from console.cli.station import answers, running_station
from console.statefile import RunningStation, state_path
from console.station.options import OptionsError, StationOptions, read_options, write_options
from engine.places import data_dir, runtime_dir
from engine.process import ManagedProcess, ProcessError

OPTIONS_FILE: Final = "station-options.json"
"""In the runtime directory: what the last station that a command started in the background was started with."""

PATIENCE_SECONDS: Final = 60.0
"""For a station to answer; the engine comes up behind it and may take minutes."""


class Launcher:
    """A station of this runtime directory: the one that runs, or one that this command starts."""

    def __init__(self, options: StationOptions) -> None:
        self._log = data_dir() / "logs" / "station.log"
        self._options_file = runtime_dir() / OPTIONS_FILE
        self.options = msgspec.structs.replace(options, log=str(self._log), stop_all_on_signal=False)
        self._process: ManagedProcess | None = None
        self._log_from = 0

    @classmethod
    def remembered(cls) -> Launcher | None:
        """For a station that another command started: with the options that it left, None when there are none."""
        try:
            return cls(read_options(runtime_dir() / OPTIONS_FILE))
        except OptionsError:
            return None

    def spawn(self) -> None:
        """Start the station process and come back at once.

        Raises:
            Unreachable: it cannot be started.
        """
        write_options(self.options, self._options_file)
        self._start()

    def ended(self) -> bool:
        """Whether the station that was started here runs no more: `last_words` says why."""
        return self._process is not None and not self._process.alive()

    def wait(self, seconds: float = PATIENCE_SECONDS) -> RunningStation:
        """The station, once it answers.

        Raises:
            Unreachable: it ended, or does not answer: with its last words.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            station = running_station()
            if station is not None and answers():
                return station
            if self._process is not None and not self._process.alive():
                raise Unreachable(self.last_words())
            time.sleep(0.05)
        raise Unreachable(f"the station does not answer after {seconds:g} s: see {self._log}")

    def revive(self) -> str | None:
        """Start the station again if it died, with the options it had. One line for the screen, None when all is well.

        A station under `specdeck serve` is left to whoever runs that.
        """
        if running_station() is not None or (self._process is not None and self._process.alive()):
            return None
        words = self.last_words() if self._process is not None else ""
        try:
            self._start()
        except Unreachable as error:
            return f"the station cannot be started again: {error}"
        return f"the station died and was started again{': ' + words if words else ''}"

    def last_words(self) -> str:
        """What a station that ended has said: its one line of error, else the end of its log."""
        text = self._log.read_bytes()[self._log_from :].decode("utf-8", "replace") if self._log.exists() else ""
        lines = [line for line in text.splitlines() if line.strip()]
        told = [line.removeprefix("station: ") for line in lines if line.startswith("station: ")]
        if told:
            return told[-1]
        return f"it ended with {lines[-1][:160] if lines else 'no message'} (log: {self._log})"

    def _start(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log_from = self._log.stat().st_size if self._log.exists() else 0
        argv = [sys.executable, "-m", "console.station", str(self._options_file)]
        try:
            self._process = ManagedProcess.start(argv, os.environ, self._log, state_path(runtime_dir(), "station"))
        except ProcessError as error:
            raise Unreachable(str(error)) from error
