"""What is wrong with a trace."""

from __future__ import annotations

from pathlib import Path

from store.database import StoreError


class TraceError(StoreError):
    """A trace that can't be read: names the file, and the line or the record."""

    def __init__(self, path: Path, line: int | None, what: str, *, foreign: bool = False) -> None:
        super().__init__(f"{path}:{line}: {what}" if line is not None else f"{path}: {what}")
        self.line = line
        """Line of JSONL, record of the compact form, both from 1; None where it is about the file."""
        self.foreign = foreign
        """It is sound, and something else than a trace of specdeck's."""
