"""Traces: the records of a run as JSONL, one object a line. Plain, zstd-compressed or inside a bundle (`store.bundle`),
told apart by content.

Unknown fields are ignored and counted. An unknown type or a broken line is an error with its line number; a
half-written last line is dropped with a note. Records that are out of order by up to a second are sorted.
"""

from __future__ import annotations

import heapq
import io
import lzma
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, Final, Self

import msgspec
import zstandard

from engine.records import (
    TRACE_VERSION,
    ControlRecord,
    EngineRecord,
    FinishRecord,
    GapRecord,
    Record,
    SequenceRecord,
    StateRecord,
    StepRecord,
)
from store.database import StoreError

SORTED_SECONDS: Final = 1.0
BUNDLED_TRACE: Final = "trace.jsonl.zst"
"""Name of the member of a bundle that holds its records."""
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_LEVEL: Final = 6
_ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")  # the second: a ZIP with nothing in it
_BROKEN_ZIP: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OverflowError, ValueError, RuntimeError,
)  # fmt: skip
"""What Python's reader raises on damaged, encrypted (RuntimeError) and foreign (its NotImplementedError) archives."""

_TYPES: Final[dict[str, type[msgspec.Struct]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (EngineRecord, SequenceRecord, StepRecord, FinishRecord, ControlRecord, GapRecord, StateRecord)
}
_FIELDS: Final = {name: frozenset((*kind.__struct_encode_fields__, "type")) for name, kind in _TYPES.items()}

_objects: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_records: Final = msgspec.json.Decoder(Record)


class TraceError(StoreError):
    """A trace that can't be read: names the file and the line."""

    def __init__(self, path: Path, line: int | None, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}" if line is not None else f"{path}: {what}")
        self.line = line


class TraceNotes:
    """What was ignored while a trace was read."""

    def __init__(self) -> None:
        self.unknown_fields: Counter[str] = Counter()
        """`type.field` → lines that had it."""
        self.dropped: str | None = None

    def lines(self) -> list[str]:
        notes = [f"unknown field {name} ignored on {count} lines" for name, count in self.unknown_fields.items()]
        return notes + ([self.dropped] if self.dropped else [])


class TraceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What `specdeck trace info` prints. Times are Unix seconds."""

    path: str
    bytes: int
    compressed: bool
    start: float | None
    end: float | None
    records: dict[str, int]
    engines: list[EngineRecord]
    sequences: int
    steps: int
    rows: int
    workloads: dict[str, int]
    """Tag → sequences; untagged ones under `untagged`."""
    frames_lost: int
    notes: list[str]


def read_records(path: str | Path, notes: TraceNotes | None = None) -> Iterator[Record]:
    """The records of a trace in the order of their time.

    Raises:
        TraceError: it can't be opened, a line is broken or of an unknown type, or it holds no engine record.
    """
    path = Path(path)
    waiting: list[tuple[float, int, Record]] = []
    newest = float("-inf")
    introduced = False
    for number, record in _parsed(path, notes if notes is not None else TraceNotes()):
        if isinstance(record, EngineRecord):  # what follows in the file belongs to it, whatever the clocks say
            introduced = True
            while waiting:
                yield heapq.heappop(waiting)[2]
            yield record
            continue
        if not introduced and isinstance(record, SequenceRecord | StepRecord | FinishRecord):
            raise TraceError(path, number, f"a {_type_of(record)} before any engine record: this is no whole trace")
        newest = max(newest, record.ts)
        heapq.heappush(waiting, (record.ts, number, record))
        while waiting and waiting[0][0] < newest - SORTED_SECONDS:
            yield heapq.heappop(waiting)[2]
    if not introduced:
        raise TraceError(path, None, "no engine record in it: this is no trace")
    while waiting:
        yield heapq.heappop(waiting)[2]


def trace_info(path: str | Path) -> TraceInfo:
    """Read a trace once and say what is in it.

    Raises:
        TraceError: as `read_records`.
    """
    path = Path(path)
    notes = TraceNotes()
    kinds: Counter[str] = Counter()
    workloads: Counter[str] = Counter()
    engines: list[EngineRecord] = []
    start, end, rows, lost = None, None, 0, 0
    for record in read_records(path, notes):
        kinds[_type_of(record)] += 1
        if isinstance(record, EngineRecord):
            engines.append(record)
            continue
        began = record.ts - record.duration_ms / 1000 if isinstance(record, StepRecord) else record.ts
        if not isinstance(record, ControlRecord):  # in a cut it may be older than all else: it was still in force
            start = began if start is None else min(start, began)
        end = record.ts if end is None else max(end, record.ts)
        if isinstance(record, StepRecord):
            rows += len(record.rows)
        elif isinstance(record, SequenceRecord):
            workloads[record.workload or "untagged"] += 1
        elif isinstance(record, GapRecord):
            lost += record.frames_lost
    with path.open("rb") as file:
        compressed = file.read(4) in (_ZSTD_MAGIC, *_ZIP_MAGICS)
    return TraceInfo(
        path=str(path), bytes=path.stat().st_size, compressed=compressed, start=end if start is None else start,
        end=end, records=dict(kinds), engines=engines, sequences=kinds["sequence"], steps=kinds["step"], rows=rows,
        workloads=dict(workloads), frames_lost=lost, notes=notes.lines(),
    )  # fmt: skip


class TraceWriter:
    """Writes records to a new file, compressed when its name ends in `.zst`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: BinaryIO = self.path.open("wb")
        self._out: BinaryIO | zstandard.ZstdCompressionWriter = self._file
        if self.path.name.endswith(".zst"):
            self._out = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(self._file, closefd=False)

    def write(self, record: Record) -> None:
        self._out.write(msgspec.json.encode(record) + b"\n")

    def flush(self) -> None:
        """Make what was written so far readable."""
        self._out.flush()
        self._file.flush()

    def close(self) -> None:
        if self._out is not self._file:
            self._out.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _parsed(path: Path, notes: TraceNotes) -> Iterator[tuple[int, Record]]:
    """Line numbers (from 1) and records, in the order of the file."""
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            yield number, _parse(path, number, line, notes)
        except TraceError:
            if line.endswith(b"\n"):
                raise
            notes.dropped = f"line {number} is cut off: dropped"


def _parse(path: Path, number: int, line: bytes, notes: TraceNotes) -> Record:
    try:
        fields = _objects.decode(line)
        kind = msgspec.json.decode(fields["type"])
    except KeyError:
        raise TraceError(path, number, "no `type`") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(path, number, f"not a JSON object: {error}") from error
    if not isinstance(kind, str) or kind not in _TYPES:
        raise TraceError(path, number, f"unknown type {kind!r}; known are {', '.join(_TYPES)}")
    for name in fields.keys() - _FIELDS[kind]:
        notes.unknown_fields[f"{kind}.{name}"] += 1
    try:
        record = _records.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(path, number, f"{kind} record: {error}") from error
    if isinstance(record, EngineRecord) and record.v > TRACE_VERSION:
        raise TraceError(path, number, f"trace format {record.v}; this specdeck reads up to {TRACE_VERSION}")
    return record


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic in _ZIP_MAGICS:
                yield from _bundled(file, path)
            else:
                yield from _decompressed(file, path) if magic == _ZSTD_MAGIC else file
    except OSError as error:
        raise TraceError(path, None, f"can't be read: {error.strerror or error}") from error


def _bundled(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            if BUNDLED_TRACE not in archive.namelist():
                raise TraceError(path, None, f"a ZIP without {BUNDLED_TRACE}: {_what_then(archive)}")
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
        yield from io.BufferedReader(reader)
    except zstandard.ZstdError as error:
        raise TraceError(path, None, f"the compression is damaged: {error}") from error


def _type_of(record: Record) -> str:
    return str(record.__struct_config__.tag)
