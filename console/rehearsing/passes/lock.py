"""One rehearsal per runtime directory: a lock that the kernel lets go of when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NAME: Final = "rehearsal.lock"


class AnotherGoesOn(Exception):
    """Says which one."""


@contextmanager
def alone(directory: Path, rehearsal: str) -> Iterator[None]:
    """Hold the lock. Raises AnotherGoesOn."""
    handle = os.open(directory / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(handle):
            raise AnotherGoesOn(f"rehearsal {_said(handle) or 'unknown'} goes on here: wait for its end, or end it")
        os.ftruncate(handle, 0)
        os.pwrite(handle, rehearsal.encode(), 0)
        yield
    finally:
        os.close(handle)


def going_on(directory: Path) -> str | None:
    """The id of the rehearsal that goes on; None for none."""
    try:
        handle = os.open(directory / _NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _locked(handle) else _said(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _said(handle: int) -> str:
    return os.pread(handle, 4096, 0).decode(errors="replace")
