"""Writes a trace, in the form that its name stands for."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Protocol, Self

import msgspec
import zstandard

from engine.records import Record, TextRecord
from store.trace.forms import COMPACT_ENDING

_ZSTD_LEVEL: Final = 6
PRIVATE_MODE: Final = 0o600


class _Sink(Protocol):
    def write(self, record: Record) -> None: ...

    def note(self, line: str) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class TraceWriter:
    """Writes records to a new file: compact when its name ends in `.parquet`, else JSONL, compressed for `.zst`.

    `private`: nobody but the owner can read it from its first byte on, as is due to text (`store.trace.texts`).

    Raises:
        FileExistsError: it is to be private and is there already: somebody may have it open.
    """

    def __init__(self, path: str | Path, *, private: bool = False) -> None:
        self.path = Path(path)
        self._private = private
        if private:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_MODE))
        self._sink: _Sink
        if self.path.name.endswith(COMPACT_ENDING):
            from store.trace.compact_writer import CompactWriter  # Arrow takes a while to import

            self._sink = CompactWriter(self.path)
        else:
            self._sink = _Lines(self.path)

    def write(self, record: Record) -> None:
        if isinstance(record, TextRecord) and not self._private:  # its beginning didn't say that there would be any
            self.path.chmod(PRIVATE_MODE)
            self._private = True
        self._sink.write(record)

    def note(self, line: str) -> None:
        """Keep a line for whoever reads the trace. Only the compact form has a place for it."""
        self._sink.note(line)

    def flush(self) -> None:
        """Make what was written so far readable. The compact form can't be read before it is closed."""
        self._sink.flush()

    def close(self) -> None:
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Lines:
    """The JSONL form."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._out: BinaryIO | zstandard.ZstdCompressionWriter = self._file
        if path.name.endswith(".zst"):
            self._out = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(self._file, closefd=False)

    def write(self, record: Record) -> None:
        self._out.write(msgspec.json.encode(record) + b"\n")

    def note(self, line: str) -> None:
        """There is no place for it."""

    def flush(self) -> None:
        self._out.flush()
        self._file.flush()

    def close(self) -> None:
        if self._out is not self._file:
            self._out.close()
        self._file.close()
