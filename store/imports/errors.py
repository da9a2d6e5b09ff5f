"""The one error of the readers of foreign records."""

from __future__ import annotations

from pathlib import Path


class ImportFailed(ValueError):
    """A foreign record that can't be read. Its text names the place (file, and line where there is one) and the remedy.

    Args:
        place: the file, or the address that was scraped.
        line: from 1.
    """

    def __init__(self, place: str | Path, line: int | None, what: str) -> None:
        super().__init__(f"{place}:{line}: {what}" if line is not None else f"{place}: {what}")
        self.place = str(place)
        self.line = line
