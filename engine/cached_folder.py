"""A model folder in the cache that is made from something else, once: it appears complete or not at all.

It is written beside its place and renamed into it, under a lock, so a killed or doubled maker leaves nothing wrong
behind. Its stamp, written last, says what it was made from and how long every file of it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from engine import weights

STAMP_NAME: Final = "specdeck.json"

Say = Callable[[str], None]
Make = Callable[[Path, Path], None]
"""(source, empty folder) → the folder holds a model."""


class ModelError(Exception):
    """A model that cannot be used: says which, why, and what to do."""


class Kind(NamedTuple):
    """What is made, and what its making needs."""

    name: str
    """Tells the kinds apart in stamps."""
    version: int
    """Raised when the making changes what it writes: older folders are then made again."""
    what: str
    """As narration calls it."""
    space: int
    """Bytes free before it begins."""
    packages: tuple[str, ...]
    """Those whose versions the stamp notes."""


class Stamp(msgspec.Struct, frozen=True):
    """Written last into a folder: what it was made from, and the size of every file in it."""

    conversion: int
    source_sha256: str
    fingerprint: str
    files: dict[str, int]
    versions: dict[str, str]
    kind: str = "bundled"
    """Older stamps have none: there was one kind."""


def read_stamp(folder: Path) -> Stamp | None:
    try:
        return msgspec.json.decode((folder / STAMP_NAME).read_bytes(), type=Stamp)
    except (OSError, msgspec.DecodeError):
        return None


def is_complete(folder: Path, kind: Kind) -> bool:
    """Whether `folder` is a finished one of `kind`: stamped, and every file as long as it was."""
    stamp = read_stamp(folder)
    if stamp is None or (stamp.kind, stamp.conversion) != (kind.name, kind.version):
        return False
    try:
        return all((folder / name).stat().st_size == size for name, size in stamp.files.items())
    except OSError:
        return False


def install(out: Path, kind: Kind, find_source: Callable[[], Path], make: Make, say: Say) -> None:
    """Make `out` a complete folder of `kind`, unless it is one. A second caller waits for the first, then finds it
    done.

    Args:
        find_source: called only when there is something to do; the file that the folder is made from.

    Raises:
        ModelError: the source is missing, or the disk has no room.
    """
    if is_complete(out, kind):
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with _lock(out, kind, say):
        if is_complete(out, kind):
            return
        source = find_source()
        _remove_remains(out)
        _check_space(out.parent, kind)
        say(f"making {kind.what} from {source.name}: {out}")
        draft = out.with_name(f".{out.name}.tmp-{os.getpid()}")
        try:
            draft.mkdir()
            make(source, draft)
            _stamp(draft, kind, source)
            _put_in_place(draft, out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        say(f"{kind.what} is ready")


def _stamp(folder: Path, kind: Kind, source: Path) -> None:
    """Write the stamp, last: its presence says that the rest is whole."""
    stamp = Stamp(
        conversion=kind.version,
        source_sha256=_sha256(source),
        fingerprint=weights.fingerprint(folder),
        files={path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        versions={name: _version(name) for name in kind.packages},
        kind=kind.name,
    )
    for path in folder.iterdir():
        _flush_to_disk(path)
    (folder / STAMP_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(stamp)) + b"\n")
    _flush_to_disk(folder / STAMP_NAME)


def _put_in_place(draft: Path, out: Path) -> None:
    """Rename `draft` to `out`. What is incomplete at `out` is moved away first: a folder can't be renamed over one."""
    if out.exists():
        old = out.with_name(f".{out.name}.old-{os.getpid()}")
        out.rename(old)
        draft.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    else:
        draft.rename(out)


def _remove_remains(out: Path) -> None:
    """What interrupted makers left. Only under the lock: a living maker's draft must stay."""
    for pattern in (f".{out.name}.tmp-*", f".{out.name}.old-*"):
        for path in out.parent.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock(out: Path, kind: Kind, say: Say) -> Iterator[None]:
    """One maker at a time. The kernel releases the lock when its holder dies, however it dies."""
    with (out.parent / f".{out.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is making {kind.what}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_space(folder: Path, kind: Kind) -> None:
    free = shutil.disk_usage(folder).free
    if free < kind.space:
        raise ModelError(
            f"{folder}: {free >> 20} MiB free, {kind.space >> 20} MiB needed for {kind.what}; "
            "free some, or set SPECDECK_CACHE_DIR to a larger disk"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
