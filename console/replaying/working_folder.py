"""A folder for the store that a trace is taken into: in the cache, held while it is in use, removed with its process.

A process that was killed leaves its folder behind; whoever comes next removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from engine.places import cache_dir

_HELD: Final = "held"


@contextmanager
def working_folder() -> Iterator[Path]:
    """A new, empty folder for as long as the block runs."""
    parent = cache_dir() / "replays"
    parent.mkdir(mode=0o700, exist_ok=True)
    for left in parent.iterdir():
        _remove_unless_held(left)
    folder = Path(tempfile.mkdtemp(prefix="", dir=parent))
    held = os.open(folder / _HELD, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _remove_unless_held(folder: Path) -> None:
    try:
        held = os.open(folder / _HELD, os.O_RDWR)
    except OSError:  # no folder of ours, or one that is being made or removed at this moment
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)
