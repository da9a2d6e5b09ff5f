"""Writes the ZIP: there when it is complete, and never over anything."""

from __future__ import annotations

import os
import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from store.bundle.contents import PARTS, README, TRACE, Bundle
from store.bundle.readme import readme
from store.database import StoreError


class BundleError(StoreError):
    """It can't be written: names the place and what to do."""


def write_bundle(bundle: Bundle, out: Path, made: float) -> dict[str, int]:
    """Write `out`, which must not be there yet, and say how large each part is, in bytes.

    Args:
        made: Unix seconds, for its README and its directory.

    Raises:
        BundleError: `out` exists, or can't be written.
    """
    if out.exists():
        raise BundleError(f"{out}: exists; choose another name, or remove it first")
    partial = out.with_name(f".{out.name}.partial-{os.getpid()}")
    try:
        sizes = _write(bundle, partial, made)
        _name(partial, out)
    except OSError as error:
        raise BundleError(f"{out}: can't be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return sizes


def _write(bundle: Bundle, partial: Path, made: float) -> dict[str, int]:
    sizes = {}
    stamp = time.localtime(made)[:6]
    with zipfile.ZipFile(partial, "x") as archive:
        for name, content in _members(bundle, made):
            member = zipfile.ZipInfo(name, stamp)
            member.external_attr = 0o644 << 16
            # What is compressed already is stored, so that it can be read in a stream.
            member.compress_type = zipfile.ZIP_STORED if name == TRACE else zipfile.ZIP_DEFLATED
            if isinstance(content, Path):
                member.file_size = content.stat().st_size
                with content.open("rb") as source, archive.open(member, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            else:
                archive.writestr(member, content)
            sizes[name] = member.file_size
    return sizes


def _members(bundle: Bundle, made: float) -> Iterator[tuple[str, bytes | Path]]:
    yield README, readme(bundle, made).encode()
    for name in PARTS:
        if name in bundle.parts:
            yield name, bundle.parts[name]


def _name(partial: Path, out: Path) -> None:
    """Give the complete file its name, unless somebody else has taken it in the meantime."""
    try:
        os.link(partial, out)
    except FileExistsError:
        raise BundleError(f"{out}: exists by now; choose another name, or remove it first") from None
    except OSError:  # a file system without hard links
        if out.exists():
            raise BundleError(f"{out}: exists by now; choose another name, or remove it first") from None
        partial.rename(out)
