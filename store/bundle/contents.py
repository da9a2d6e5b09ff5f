"""What a bundle is made of. Its records are read like any trace (`store.trace`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from store.trace import BUNDLED_TRACE

README: Final = "README.txt"
TRACE: Final = BUNDLED_TRACE

PARTS: Final = {
    TRACE: "the records: what each engine step drafted, accepted and took; specdeck opens this ZIP as a trace",
    "report.json": "the figures of the same stretch, as `specdeck report --json` prints them",
    "status.json": "what ran, as `specdeck status --json` prints it",
    "config.json": "what the station was started with",
    "versions.json": "versions of the software, and the machine",
    "doctor.json": "what `specdeck doctor` found",
    "station.log": "the end of the station's log",
    "engine.log": "the end of vLLM's log",
}
"""What a bundle may hold, in the order in which it is written."""


class Bundle(NamedTuple):
    """What goes into one. `parts`: by their names in `PARTS`, redacted; a path is a file to be taken in as it is."""

    subject: str
    """What it is of, for its README."""
    parts: Mapping[str, bytes | Path]
    missing: Mapping[str, str]
    """Why a part is not there, redacted."""
    tags_kept: bool = False
    doubts: tuple[str, ...] = ()
    """What could not be done for its redaction."""
