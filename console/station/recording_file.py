"""The file of a recording: whether one can be written at a place, and the writing of it. Both may take their time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from console.feed.traces import RecordingForm, form_of_name, name_fault
from console.looking.folders import traces_folder
from engine.records import StateRecord
from store import progress
from store.sql import only_row

if TYPE_CHECKING:
    from console.station.recorder import Recorder

BYTES_PER_ROW: Final[dict[RecordingForm, float]] = {"zst": 9.0, "jsonl": 100.0, "compact": 9.0}
"""Of the sample traces, on average: 6 to 14 compressed."""
_NO_STEP: Final = 2**62
_BEGINS_LATER: Final = "the station removed older steps meanwhile: it begins later, without what the judge knew"


class NoTarget(Exception):
    """A recording can't be written there: says why, and what to do."""


class Written(NamedTuple):
    bytes: int
    note: str = ""


def check_target(path: str, *, replace: bool) -> None:
    """Raises NoTarget: nothing can be written there, or there is a file and it is not to be replaced."""
    target = Path(path)
    if not target.is_absolute():
        raise NoTarget(f"{path!r} must be an absolute path: the station runs elsewhere")
    if (fault := name_fault(path)) is not None:
        raise NoTarget(fault)
    try:
        _check_folder(target.parent)
        _check_place(target, replace)
    except OSError as error:
        raise NoTarget(f"{target}: {error.strerror or error}") from error


def _check_folder(folder: Path) -> None:
    if folder == traces_folder():
        folder.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NoTarget(f"there is no folder {folder}: make it, or choose another")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NoTarget(f"the folder {folder} can't be written to: choose another")


def _check_place(target: Path, replace: bool) -> None:
    if target.is_dir():
        raise NoTarget(f"{target} is a folder: name a file in it")
    if target.exists() and not target.is_file():
        raise NoTarget(f"{target} is a pipe or a device: name a file")
    if target.exists() and not replace:
        raise NoTarget(f"{target} is there already: choose another name, or have it replaced")


def prepare(recorder: Recorder, path: str, *, replace: bool) -> None:
    """See that a recording can begin: all that came is stored, and there is a place for it. Raises NoTarget."""
    check_target(path, replace=replace)
    _store_all(recorder)


def rows_since(recorder: Recorder, ts: float) -> int:
    """Rows that are stored of steps from a moment on."""
    with recorder.reading() as connection:
        query = (
            f"SELECT count(*) FROM rows WHERE step >= (SELECT coalesce(min(id), {_NO_STEP}) FROM steps WHERE ts >= ?)"
        )
        (rows,) = only_row(connection, query, [ts])
    return int(rows)


def write_recording(recorder: Recorder, path: str, state: StateRecord, *, replace: bool) -> Written:
    """Write what was recorded since `state`, to a name of its own until it is complete.

    Raises:
        StoreError, OSError, NoTarget: it can't be written; nothing is left behind of it.
    """
    from store.export import export

    target = Path(path)
    prepare(recorder, path, replace=replace)
    there = replace and target.exists()
    made = target.with_name(f".new-{os.getpid()}-{target.name}") if there else target
    with recorder.reading() as connection:
        later = progress.up_to(connection, progress.RAW_FROM) >= state.ts
        result = export(connection, made, "compact" if form_of_name(path) == "compact" else "jsonl", state=state)
    if there:
        made.replace(target)
    return Written(result.bytes, _BEGINS_LATER if later else "")


def was_written(path: str, ended: float) -> bool:
    """Whether a station that ended while it wrote this file came to the end of it: it has its name only then."""
    try:
        return Path(path).stat().st_mtime >= ended
    except OSError:
        return False


def _store_all(recorder: Recorder) -> None:
    if not recorder.flush_and_wait():
        raise NoTarget(recorder.error or "the store takes too long to take in what came last")
