"""The process of a rehearsal that the station starts: what it may be asked for, interrupted with, and left with."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from pathlib import Path
from typing import Final

from console.station.log_tail import last_words
from engine.process import ManagedProcess, ProcessError

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 5.0

_BUILT_IN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


class Refused(Exception):
    """It can't be done now, or not so: says why."""


def check_plan(plan: str) -> None:
    """Raises Refused: it can be neither a name nor a file. What is in it the rehearsal itself reads."""
    if _BUILT_IN.fullmatch(plan):
        return
    path = Path(plan)
    if not path.is_absolute():
        raise Refused(f"plan: {plan!r} is neither a name nor an absolute path; this station runs elsewhere")
    if not path.is_file():
        raise Refused(f"plan: there is no file {plan}")


def interrupt(pid: int) -> None:
    """As ctrl+c. Raises Refused: it is another user's."""
    try:
        os.kill(pid, signal.SIGINT)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError as error:
        raise Refused(f"pid {pid} belongs to another user: interrupt it where it runs") from error


def how_it_ended(process: ManagedProcess) -> str:
    """Of one that is gone and had not said so: the signal or the exit code, and its last words."""
    code = process.exit_code()
    how = "" if code is None else f" with exit code {code}" if code >= 0 else f": {signal.Signals(-code).name}"
    return f"it ended without a last word{how}: {last_words(process.log_path, process.state.log_offset)}"


async def clear_away(process: ManagedProcess) -> None:
    """End it, and what it may have left: its load goes on sending otherwise."""
    try:
        await asyncio.to_thread(process.terminate_group, GRACE_SECONDS)
    except ProcessError as error:
        log.warning("%s", error)
