"""The working folder of a run: what each stage leaves there, written whole or not at all, so that a killed run goes on
where it was. A folder belongs to one recipe and one target; another is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.drafter.recipe import Recipe
from engine.models import ModelPath

_RUN: Final = "run.json"


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
        """Take the folder for this run, or go on with it.

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
        if found.recipe != recipe or found.target != target.identity:
            raise WorkError(f"{self.folder}: holds a run with {_difference(found, wanted)}; give another --work folder")
        if found.folder != wanted.folder:
            write_json(path, wanted)  # the same target, moved


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


def _difference(found: Run, wanted: Run) -> str:
    if found.target != wanted.target:
        return f"the target {found.target}, not {wanted.target}"
    names = [name for name in Recipe.__struct_fields__ if getattr(found.recipe, name) != getattr(wanted.recipe, name)]
    return f"another recipe ({', '.join(names)})"


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all."""
    with whole(path) as draft:
        draft.write_bytes(msgspec.json.encode(value) + b"\n")


@contextmanager
def whole(path: Path) -> Any:
    """A draft beside `path` that becomes it when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft-{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


Narrate = Callable[[str], None]
