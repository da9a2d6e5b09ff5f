"""The lines of a JSONL trace, wherever they are packed."""

from __future__ import annotations

import codecs
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Final

import zstandard

from store.trace.errors import TraceError
from store.trace.forms import BUNDLED_TRACE, Form, unreadable

_BUFFER: Final = 1 << 18
_BROKEN_ZIP: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OverflowError, ValueError, RuntimeError,
)  # fmt: skip
"""What Python's reader raises on damaged, encrypted (RuntimeError) and foreign (its NotImplementedError) archives."""


def lines_of(path: Path, form: Form) -> Iterator[bytes]:
    """With their ends: only the last may lack it. A byte order mark, as some editors leave one, is no part of them.

    Raises:
        TraceError: it can't be read, unpacked, or is no bundle with a trace in it.
    """
    try:
        with path.open("rb") as file:
            yield from _unmarked(_packed(file, path, form))
    except OSError as error:
        raise unreadable(path, error) from error


def _unmarked(lines: Iterator[bytes]) -> Iterator[bytes]:
    for first in lines:
        yield first.removeprefix(codecs.BOM_UTF8)
        break
    yield from lines


def _packed(file: BinaryIO, path: Path, form: Form) -> Iterator[bytes]:
    if form == "bundle":
        return _bundled(file, path)
    return _decompressed(file, path) if form == "zst" else file


def _bundled(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            if BUNDLED_TRACE not in archive.namelist():
                raise TraceError(path, None, f"a ZIP without {BUNDLED_TRACE}: {_what_then(archive)}", foreign=True)
            with archive.open(BUNDLED_TRACE) as member:
                yield from _decompressed(member, path)
    except _BROKEN_ZIP as error:
        raise TraceError(path, None, f"the ZIP can't be read: {error}; copy it again, or have it made anew") from error


def _what_then(archive: zipfile.ZipFile) -> str:
    if "versions.json" in archive.namelist():
        return "a bundle that was made without records; its README.txt says why"
    return "no bundle of specdeck's"


def _decompressed(file: IO[bytes], path: Path) -> Iterator[bytes]:
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    try:
        yield from io.BufferedReader(reader, _BUFFER)
    except zstandard.ZstdError as error:
        raise TraceError(path, None, f"the compression is damaged: {error}") from error
