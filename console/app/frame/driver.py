"""Textual's driver, writing to an `Outlet`, and stopped and continued as a shell's jobs are."""

from __future__ import annotations

import os
import signal
from typing import Any, cast

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from console.app.frame.outlet import Outlet


def driver_on(outlet: Outlet) -> type[LinuxDriver]:
    """The class of a driver whose output goes there."""

    class TerminalDriver(LinuxDriver):
        def __init__(
            self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
        ) -> None:
            super().__init__(app, debug=debug, mouse=mouse, size=size)
            self._file = cast(Any, outlet)  # all that is asked of it
            self._stopped = False

        @property
        def can_suspend(self) -> bool:
            return has_job_control()

        def _sigtstp_application(self, *_: object) -> None:
            """Restore the terminal, and stop as a job does: with all of its group, or no shell would notice."""
            if not self.can_suspend:
                return
            self.suspend_application_mode()
            self._must_signal_resume = self._stopped = True
            os.killpg(os.getpgrp(), signal.SIGSTOP)

        def _sigcont_application(self, *_: object) -> None:
            """Set the terminal up again. One that was stopped by SIGSTOP had no time to restore it: now, then."""
            if not self._stopped:
                self.suspend_application_mode()
            self._stopped = False
            self.resume_application_mode()

    return TerminalDriver


def has_job_control() -> bool:
    """A shell gave this process a group of its own, and so can continue it: a session's first process has none."""
    return os.getpgrp() != os.getsid(0)
