"""Reads the JSONL form: line by line as records, or quickly, with the steps in blocks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, get_args

import msgspec

from engine.records import TEXT_VERSION, EngineRecord, Record
from store.trace.entries import Entry
from store.trace.errors import TraceError
from store.trace.forms import Form
from store.trace.lines import lines_of
from store.trace.loose_steps import LooseStep, in_blocks, quick_step
from store.trace.notes import TraceNotes

CHUNK_ROWS: Final = 16_384
CHUNK_STEPS: Final = 2048
"""Steps are put into blocks of about so many rows, or steps."""

_TYPES: Final[dict[str, type[msgspec.Struct]]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Record)}
_FIELDS: Final = {name: frozenset((*kind.__struct_encode_fields__, "type")) for name, kind in _TYPES.items()}

_objects: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_records: Final = msgspec.json.Decoder(Record)


def records(path: Path, form: Form, notes: TraceNotes) -> Iterator[Entry]:
    """In the order of the file. Raises TraceError."""
    for number, line in enumerate(lines_of(path, form), 1):
        record = _of_line(path, number, line, notes)
        if record is not None:
            yield record.ts, number, record, 0


def blocks(path: Path, form: Form, notes: TraceNotes) -> Iterator[Entry]:
    """The same in a fraction of the time, with the steps in blocks. Raises TraceError, after all that came before."""
    lines = enumerate(lines_of(path, form), 1)
    while True:
        found, error = _chunk(path, lines, notes)
        yield from found
        if error is not None:
            raise error
        if not found:
            return


def _chunk(path: Path, lines: Iterator[tuple[int, bytes]], notes: TraceNotes) -> tuple[list[Entry], TraceError | None]:
    """The next lines, none at the end, and what was wrong with the one after them."""
    chunk: list[tuple[float, int, Record | LooseStep]] = []
    rows, failed = 0, None
    with _no_collection():
        try:
            while rows < CHUNK_ROWS and len(chunk) < CHUNK_STEPS:
                number, line = next(lines)
                step = quick_step(line)
                if step is not None:
                    rows += len(step.rows)
                    chunk.append((step.ts, number, step))
                elif (record := _of_line(path, number, line, notes)) is not None:
                    chunk.append((record.ts, number, record))
        except StopIteration:
            pass
        except TraceError as error:
            failed = error
        return list(in_blocks(chunk)), failed


@contextmanager
def _no_collection() -> Iterator[None]:
    """A chunk is made of ten thousands of tuples that are soon dropped: to look through them for cycles again and again
    takes half the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def parse(path: Path, number: int, text: bytes, notes: TraceNotes) -> Record:
    """One record of JSON. `number`: where it is, for the error.

    Raises:
        TraceError: it is no record, or one of a newer format.
    """
    try:
        fields = _objects.decode(text)
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
        record = _records.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(path, number, f"{kind} record: {error}") from error
    if isinstance(record, EngineRecord) and record.v > TEXT_VERSION:
        raise TraceError(path, number, f"trace format {record.v}; this specdeck reads up to {TEXT_VERSION}")
    return record


def _of_line(path: Path, number: int, line: bytes, notes: TraceNotes) -> Record | None:
    """None: there is nothing in it, or it is the last one and cut off."""
    if not line.strip():
        return None
    try:
        return parse(path, number, line, notes)
    except TraceError:
        if line.endswith(b"\n"):
            raise
        notes.dropped = f"line {number} is cut off: dropped"
        return None
