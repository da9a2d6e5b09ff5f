"""A rehearsal's folder: written so that whatever is there under its name is whole, and read back to go on with it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from console.rehearsing.passes.order import DuePass, passes
from store.rehearsal.records import DrawnRequest, Pass, Rehearsal

LATEST: Final = "latest"
REHEARSAL: Final = "rehearsal.json"
PASS: Final = "pass.json"
REQUESTS: Final = "requests.jsonl"
OUTCOMES: Final = "outcomes.jsonl"
TRACE: Final = "trace.jsonl.zst"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class FolderError(ValueError):
    """No such rehearsal, or one that can't be read: says which and what there is."""


def new_id(plan: str, now: float) -> str:
    """UTC time and the plan's name, as a file may be called."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    return f"{stamp}-{_NO_NAME.sub('-', plan).strip('-.') or 'plan'}"


class RehearsalFolder:
    """`path` is `<data dir>/rehearsals/<id>`; it is made with the first thing that is put into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        return self.path.name

    def begun(self) -> bool:
        """Whether it came as far as to its first pass."""
        return (self.path / REHEARSAL).exists()

    def remove_unbegun(self) -> None:
        """Of one that never came so far there is nothing to keep."""
        if not self.begun():
            shutil.rmtree(self.path, ignore_errors=True)

    def rehearsal(self) -> Rehearsal:
        """Raises FolderError."""
        found: Rehearsal = _read(self.path / REHEARSAL, Rehearsal)
        return found

    def keep(self, rehearsal: Rehearsal) -> None:
        write_json(self.path / REHEARSAL, rehearsal)

    def done(self) -> dict[int, Pass]:
        """Passes that came to their end, by number.

        Raises:
            FolderError: one is another than the plan has under its number.
        """
        found = {}
        for due in passes(self.rehearsal().plan):
            file = self.of(due) / PASS
            if not file.exists():
                continue
            made = _read(file, Pass)
            if (made.number, made.arm, made.repeat) != due[:3]:
                raise FolderError(f"{file}: pass {made.number} of arm {made.arm}, repeat {made.repeat} is elsewhere")
            found[made.number] = made
        return found

    def of(self, due: DuePass) -> Path:
        """The folder of a pass."""
        return self.path / "passes" / f"{due.number:02}-{due.arm}-r{due.repeat}"

    def begin(self, due: DuePass, draw: Callable[[], Iterable[DrawnRequest]]) -> Path:
        """An empty folder for a pass, with its requests: what an attempt before has left is thrown away.

        The requests are those of the first pass that was made of the repeat, byte by byte, whatever became meanwhile of
        the files that they were drawn from; `draw` gives them where there is none.
        """
        place, drawn = self.of(due), self._drawn(due.repeat)
        if drawn is None:
            encode = msgspec.json.encode
            drawn = b"".join(encode(request) + b"\n" for request in draw())
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _replace(place / REQUESTS, drawn)
        return place

    def _drawn(self, repeat: int) -> bytes | None:
        """The requests of a repeat, from a pass of it that came to its end."""
        for due in passes(self.rehearsal().plan):
            place = self.of(due)
            if due.repeat == repeat and (place / PASS).exists() and (place / REQUESTS).exists():
                return (place / REQUESTS).read_bytes()
        return None

    def finish(self, due: DuePass, made: Pass) -> None:
        """The last thing that is written of a pass: it says that the others are whole."""
        for name in (OUTCOMES, TRACE):
            _reach_the_disk(self.of(due) / name)
        write_json(self.of(due) / PASS, made)


def _reach_the_disk(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """As one change: a file under its name is whole, also after the power failed."""
    _replace(path, msgspec.json.format(msgspec.json.encode(value)) + b"\n")


def find(base: Path, name: str) -> RehearsalFolder:
    """The rehearsal with this id, the newest for `latest`.

    Raises:
        FolderError: there is none.
    """
    known = all_of(base)
    if name == LATEST and known:
        return known[-1]
    for folder in known:
        if folder.id == name:
            return folder
    if not known:
        raise FolderError(f"there is no rehearsal in {base}: `specdeck rehearse` makes one")
    raise FolderError(f"no rehearsal {name} in {base}; the newest is {known[-1].id}, `--list` shows all")


def all_of(base: Path) -> list[RehearsalFolder]:
    """Those that came to a first pass, oldest first."""
    found = [RehearsalFolder(path) for path in base.iterdir()] if base.is_dir() else []
    return sorted((folder for folder in found if folder.begun()), key=lambda folder: folder.id)


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise FolderError(f"{path} can't be read: {error}") from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
