"""Reading logs of children: a chunk for the Engine screen, and the last words of one that died."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from console.feed.protocol import LogChunk, LogParams

_LAST_BYTES: Final = 16384
_TELLING: Final = ("Error", "error:", "ERROR", "Exception", "Traceback", "Killed")


def read_chunk(path: Path, params: LogParams) -> LogChunk:
    """Up to `limit` bytes after `offset`; a negative offset counts from the end. A missing file is an empty one."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = max(0, size + params.offset) if params.offset < 0 else min(params.offset, size)
            file.seek(start)
            data = file.read(max(0, min(params.limit, 1 << 20)))
    except OSError:
        return LogChunk(str(path), "", 0)
    return LogChunk(str(path), data.decode("utf-8", "replace"), start + len(data))


def text_since(path: Path, offset: int) -> str:
    """What was written after byte `offset`."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def last_words(path: Path, since: int = 0) -> str:
    """The last telling line of a log, else its last line, else where the log is; at most 200 characters."""
    chunk = text_since(path, max(since, size_of(path) - _LAST_BYTES))
    lines = [line.strip() for line in chunk.splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line for word in _TELLING)]
    line = telling[-1] if telling else lines[-1] if lines else ""
    return f"{line[:200]} (log: {path})" if line else f"it left no message (log: {path})"
