"""Where traces are looked for, and which files there may be some. Nothing is opened here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

import console
from console.feed.traces import TraceLook, TracePlace
from engine.places import data_dir

ENDINGS: Final = (".jsonl.zst", ".jsonl", ".parquet", ".duckdb", ".zip")
MOST_FILES: Final = 100
"""Of a directory, the newest."""
MOST_ENTRIES: Final = 5000
"""Looked at in a directory, in its own order: one with more is no place for traces."""

Place = Literal["data", "here", "samples"]


class Listing(NamedTuple):
    """`files`: nothing is known of them but their size and time."""

    files: list[TraceLook]
    places: list[TracePlace]


def traces_folder() -> Path:
    """Where a recording goes that nobody gave a place. It need not be there yet."""
    return data_dir() / "traces"


def samples_folder() -> Path | None:
    """The sample traces, where this specdeck came with them."""
    folder = Path(console.__file__).absolute().parent.parent / "sample_traces"
    return folder if folder.is_dir() else None


def listed(here: str | None, samples: Path | None) -> Listing:
    """Files that may be traces: the newest first, the samples last. May take its time."""
    files: list[TraceLook] = []
    places: list[TracePlace] = []
    for place, folder in _places(here, samples):
        found, told = _look_into(place, folder)
        files += found
        places.append(told)
    files.sort(key=lambda file: (file.place == "samples", -file.modified, file.path))
    return Listing(files, places)


def _places(here: str | None, samples: Path | None) -> Iterator[tuple[Place, Path]]:
    """Each directory once."""
    named: list[tuple[Place, Path | None]] = [
        ("data", traces_folder()), ("samples", samples), ("here", Path(here) if here and os.path.isabs(here) else None),
    ]  # fmt: skip
    seen: set[str] = set()
    for place, folder in named:
        if folder is not None and (real := os.path.realpath(folder)) not in seen:
            seen.add(real)
            yield place, folder


def _look_into(place: Place, folder: Path) -> tuple[list[TraceLook], TracePlace]:
    try:
        with os.scandir(folder) as entries:
            found = [look for entry in islice(entries, MOST_ENTRIES) if (look := _file(place, entry)) is not None]
    except FileNotFoundError:
        gone = "" if place == "data" else "it is not there any more"
        return [], TracePlace(path=str(folder), place=place, error=gone)
    except OSError as error:
        return [], TracePlace(path=str(folder), place=place, error=error.strerror or str(error))
    readable = sorted((look for look in found if look.path.isprintable()), key=lambda look: -look.modified)
    shown = readable[:MOST_FILES]
    return shown, TracePlace(path=str(folder), place=place, left_out=len(found) - len(shown))


def _file(place: Place, entry: os.DirEntry[str]) -> TraceLook | None:
    """None: no file that could hold a trace. Hidden ones are being written."""
    if entry.name.startswith(".") or not entry.name.endswith(ENDINGS):
        return None
    try:
        if not entry.is_file():
            return None
        stat = entry.stat()
    except OSError:  # gone meanwhile, or a link to nowhere
        return None
    return TraceLook(path=entry.path, place=place, bytes=stat.st_size, modified=stat.st_mtime)
