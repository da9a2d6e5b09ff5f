"""Files of others as bytes and text: UTF-8 with or without a byte order mark, UTF-16 with one."""

from __future__ import annotations

import codecs
from datetime import datetime, tzinfo
from pathlib import Path

from store.imports.errors import ImportFailed

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(path: Path) -> bytes:
    """All of a file.

    Raises:
        ImportFailed: it can't be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ImportFailed(path, None, f"can't be read: {error.strerror or error}") from error


def modified(path: Path, zone: tzinfo | None) -> datetime:
    """When a file was last written, without a zone, in `zone`; None is local time.

    Raises:
        ImportFailed: it can't be told.
    """
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, zone).replace(tzinfo=None)
    except (OSError, OverflowError, ValueError) as error:
        raise ImportFailed(path, None, f"its modification time can't be told: {error}") from error


def decoded(data: bytes, place: str | Path) -> str:
    """The text, without its byte order mark.

    Raises:
        ImportFailed: it is no text; names the line.
    """
    encoding = _encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ImportFailed(place, line, f"not {encoding.upper()} text: give the file as the server wrote it") from error


def decoded_anyhow(data: bytes) -> str:
    """The text, with a replacement sign for each byte that belongs to none: a log may hold anything."""
    return data.decode(_encoding(data), errors="replace")


def _encoding(data: bytes) -> str:
    if data.startswith(_UTF16_MARKS):
        return "utf-16"
    return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
