"""A replay process of a test's own, in a short folder, and ends whatever is left of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


def replay_command(trace: Path, folder: Path) -> list[str]:
    return [sys.executable, "-m", "console.replaying", str(trace.absolute()), "--sockets", str(folder / "run")]


def environment(folder: Path) -> dict[str, str]:
    """With a cache of its own: what a replay keeps meanwhile lies there."""
    return {**os.environ, "PYTHONSAFEPATH": "1", "SPECDECK_CACHE_DIR": str(folder / "cache")}


@contextlib.contextmanager
def running_replay(trace: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The process and its folder: sockets in `run`, what it keeps in `cache`. Its standard input is open meanwhile."""
    with tempfile.TemporaryDirectory(prefix="sdr") as name:
        folder = Path(name)
        process = subprocess.Popen(
            replay_command(trace, folder),
            env=environment(folder), cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process, folder
        finally:
            process.kill()
            process.communicate()


def kept(folder: Path) -> list[Path]:
    """What is left in the cache of a replay."""
    return [path for path in (folder / "cache").rglob("*") if path.is_file()]
