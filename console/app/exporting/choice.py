"""What an export may be: path, form by its ending, and since when. Pure but for a look at the disk."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

FORMS: Final[dict[str, str]] = {
    ".duckdb": "a store: every table, for `specdeck` and for SQL",
    ".jsonl.zst": "a trace, compressed: for `specdeck replay`",
    ".jsonl": "a trace, one record a line",
    ".parquet": "a compact trace: for `specdeck replay`",
    ".csv": "a table: one line for each row of a step",
}
"""By ending."""
FOLDER: Final = "a folder of Parquet files, one for each table"
WHOLE_ONLY: Final = ("", ".csv")
"""Endings of forms that can't begin at a moment."""


class Range(NamedTuple):
    """`seconds`: back from now; None for everything."""

    name: str
    seconds: float | None


RANGES: Final = (
    Range("all that is kept", None), Range("the last 15 min", 900.0), Range("the last hour", 3600.0),
    Range("the last 6 h", 21_600.0),
)  # fmt: skip


class Choice(NamedTuple):
    """`since`: Unix seconds; None for everything. `replaces`: something is there that it takes the place of."""

    path: Path
    since: float | None
    range: Range
    replaces: bool


class ChoiceError(ValueError):
    """Says what is wrong with it and what to do."""


def proposed(folder: Path, now: float) -> Path:
    """A name that is free in `folder`, with the time in it."""
    stem = f"specdeck-{time.strftime('%Y%m%d-%H%M', time.localtime(now))}"
    names = (f"{stem}{f'-{number}' if number else ''}.jsonl.zst" for number in range(100))
    return folder / next((name for name in names if not os.path.lexists(folder / name)), f"{stem}.jsonl.zst")


def ending_of(name: str) -> str:
    """The ending that says the form; empty for a folder. Raises ChoiceError: another one."""
    found = next((ending for ending in FORMS if name.endswith(ending)), None)
    if found is not None:
        return found
    if Path(name).suffix:
        raise ChoiceError(f"the ending says the form, one of {' '.join(FORMS)}; without one it is a folder")
    return ""


def form_of(name: str) -> str:
    """In words. Raises ChoiceError."""
    ending = ending_of(name)
    return FORMS[ending] if ending else FOLDER


def choose(text: str, folder: Path, wanted: Range, now: float, taken: Collection[str]) -> Choice:
    """What was written, made a choice.

    Args:
        folder: where a relative path begins.
        now: the time that is shown, Unix seconds.
        taken: files that are being recorded into or replayed: never replaced.

    Raises:
        ChoiceError: it can't be written, names no form, or the form can't begin at a moment.
    """
    if not text.strip() or "\0" in text:
        raise ChoiceError("write the path of a file, such as night.jsonl.zst")
    try:
        path = Path(os.path.normpath(folder / Path(text.strip()).expanduser()))
    except RuntimeError as error:  # nobody of that name has a home here
        raise ChoiceError(str(error)) from error
    ending = ending_of(path.name)
    if wanted.seconds is not None and ending in WHOLE_ONLY:
        what = "a table (.csv)" if ending else "a folder"
        raise ChoiceError(f"{what} holds everything: choose “{RANGES[0].name}”, or a trace or store for {wanted.name}")
    if not os.path.isdir(path.parent):  # pathlib's raises below a folder that may not be looked into
        raise ChoiceError(f"there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ChoiceError(f"nothing can be written into {path.parent}: choose another folder")
    replaces = os.path.lexists(path)
    if replaces:
        _check_replaced(path, taken)
    return Choice(path, None if wanted.seconds is None else now - wanted.seconds, wanted, replaces)


def _check_replaced(path: Path, taken: Collection[str]) -> None:
    if any(_same(path, other) for other in taken):
        raise ChoiceError(f"{path.name} is in use, it is what is recorded into or replayed: choose another name")
    if not path.is_file() or path.is_symlink():
        raise ChoiceError(f"{path.name} is there already and is no plain file: choose another name")


def _same(path: Path, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
