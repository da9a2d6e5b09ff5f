"""The forms that a trace can have, told apart by content; what is to be written, by the name."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from store.trace.errors import TraceError

Form = Literal["jsonl", "zst", "bundle", "compact"]

BUNDLED_TRACE: Final = "trace.jsonl.zst"
"""Name of the member of a bundle that holds its records."""
COMPACT_ENDING: Final = ".parquet"
ENDINGS: Final = (".jsonl", ".jsonl.zst", COMPACT_ENDING)
"""Of the files that hold a trace and nothing else."""

_MAGICS: Final[dict[bytes, Form]] = {
    b"\x28\xb5\x2f\xfd": "zst",
    b"PK\x03\x04": "bundle",
    b"PK\x05\x06": "bundle",  # a ZIP with nothing in it
    b"PAR1": "compact",
    b"PARE": "compact",  # an encrypted one: none of ours, and Arrow says so
}


def form_of(path: Path) -> Form:
    """The form of a file by its first bytes; whatever is not known is taken for JSONL.

    Raises:
        TraceError: it can't be opened.
    """
    try:
        with path.open("rb") as file:
            return _MAGICS.get(file.read(4), "jsonl")
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> TraceError:
    return TraceError(path, None, f"can't be read: {error.strerror or error}")
