"""The working folder of a run: what each stage leaves there, written whole or not at all, so that a killed run goes on
where it was. A folder belongs to one recipe and one target; another is refused."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from engine.drafter.recipe import FIT_FIELDS, Recipe
from engine.models import ModelPath

_RUN: Final = "run.json"
_LOCK: Final = ".lock"
PATIENCE: Final = 10.0
"""Seconds to wait for the folder: a killed stage holds the lock until it has given its memory back."""
_DRAFTS: Final = ".*.draft-*"
"""As `draft_of` names them."""


class WorkError(Exception):
    """A working folder that cannot be used: says why, and what to do."""


class Run(msgspec.Struct, frozen=True):
    """What the folder is about."""

    recipe: Recipe
    target: str
    """Identity of the target (`engine.models.ModelPath.identity`)."""
    folder: str
    """Where the target is on this machine."""


class Work:
    """Paths in the folder. Stages hold one of these and nothing else in common."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prompts = folder / "prompts.json"
        self.answers = folder / "answers"
        self.features = folder / "features"
        self.fit = folder / "fit"
        self.head = folder / "head"
        self.early_head = folder / "early-head"
        self.evaluation = folder / "evaluation.json"

    def claim(self, recipe: Recipe, target: ModelPath) -> None:
        """Take the folder for this run, or go on with it. Answers and features serve any recipe that differs only in
        how the head is fitted to them.

        Raises:
            WorkError: the folder holds a run of another recipe or target.
        """
        wanted = Run(recipe, target.identity, target.path)
        path = self.folder / _RUN
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(path, wanted)
            return
        found = read_run(self)
        if found.target != target.identity:
            raise WorkError(f"{self.folder}: holds a run for {found.target}; give another --work folder")
        other = _differences(found.recipe, recipe)
        if other - FIT_FIELDS:
            raise WorkError(f"{self.folder}: holds a run with another {_listed(other)}; give another --work folder")
        if other and self.fit.exists():
            raise WorkError(
                f"{self.fit}: a fit with another {_listed(other)}; delete it to fit anew, or give another --work folder"
            )
        if found != wanted:
            write_json(path, wanted)

    @contextmanager
    def alone(self) -> Iterator[int]:
        """Hold the folder's lock, and clear what killed stages left half done. Gives the lock's descriptor: a child
        that inherits it holds the lock as well, should it outlive its parent.

        Raises:
            WorkError: another process is at work here.
        """
        with (self.folder / _LOCK).open("w") as file:
            deadline = time.monotonic() + PATIENCE
            while not _locked(file):
                if time.monotonic() > deadline:
                    raise WorkError(f"{self.folder}: another process is at work here; wait for it or end it")
                time.sleep(0.1)
            for path in [*self.folder.glob(_DRAFTS), *self.folder.glob(f"*/{_DRAFTS}")]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield file.fileno()


def read_run(work: Work) -> Run:
    """What a folder is about.

    Raises:
        WorkError: no run was begun there, or its record cannot be read.
    """
    path = work.folder / _RUN
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run)
    except FileNotFoundError:
        raise WorkError(f"{work.folder}: no run was begun there (specdeck drafter train)") from None
    except msgspec.DecodeError as error:
        raise WorkError(f"{path}: {error}; give another --work folder, or delete this one") from error


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _differences(found: Recipe, wanted: Recipe) -> set[str]:
    return {name for name in Recipe.__struct_fields__ if getattr(found, name) != getattr(wanted, name)}


def _listed(fields: set[str]) -> str:
    return f"recipe ({', '.join(sorted(fields))})"


def draft_of(path: Path) -> Path:
    """Beside `path`: where it is written before it is whole."""
    return path.with_name(f".{path.name}.draft-{os.getpid()}")


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all."""
    with whole(path) as draft:
        draft.write_bytes(msgspec.json.encode(value) + b"\n")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft beside `path` that becomes it when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


Narrate = Callable[[str], None]
