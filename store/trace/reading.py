"""Reads a trace of any form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engine.records import EngineRecord, FinishRecord, Record, SequenceRecord, StepRecord
from store.step_block import StepBlock
from store.trace import jsonl
from store.trace.entries import Entry, type_of
from store.trace.errors import TraceError
from store.trace.forms import form_of
from store.trace.notes import TraceNotes
from store.trace.order import in_order


class Steps(NamedTuple):
    """Steps `start` to `stop` (exclusive) of a block: they follow each other in time with nothing between them."""

    block: StepBlock
    start: int
    stop: int


def read_records(path: str | Path, notes: TraceNotes | None = None) -> Iterator[Record]:
    """The records of a trace in the order of their time.

    Raises:
        TraceError: it can't be opened, a line is broken or of an unknown type, or it holds no engine record.
    """
    return _alone(in_order(_records(Path(path), notes)))


def file_records(path: str | Path, notes: TraceNotes | None = None) -> Iterator[Record]:
    """The same in the order of the file. Raises as `read_records`."""
    return _alone(_records(Path(path), notes))


def read_pieces(path: str | Path, notes: TraceNotes | None = None) -> Iterator[Record | Steps]:
    """The same as `read_records`, many times faster: most steps come as arrays, many at once. Raises as it does."""
    path = Path(path)
    notes = notes if notes is not None else TraceNotes()
    form = form_of(path)
    if form == "compact":
        from store.trace import compact

        entries = compact.blocks(path, notes)
    else:
        entries = jsonl.blocks(path, form, notes)
    return _together(in_order(_introduced(path, entries)))


def _records(path: Path, notes: TraceNotes | None) -> Iterator[Entry]:
    notes = notes if notes is not None else TraceNotes()
    form = form_of(path)
    if form == "compact":
        from store.trace import compact  # Arrow takes a while to import

        yield from _introduced(path, compact.blocks(path, notes))
    else:
        yield from _introduced(path, jsonl.records(path, form, notes))


def _introduced(path: Path, entries: Iterator[Entry]) -> Iterator[Entry]:
    """The same entries, if the engines are told of first."""
    for entry in entries:
        what = entry[2]
        if isinstance(what, SequenceRecord | StepRecord | FinishRecord | StepBlock):
            name = "step" if isinstance(what, StepBlock) else type_of(what)
            raise TraceError(path, entry[1], f"a {name} before any engine record: this is no whole trace")
        yield entry
        if isinstance(what, EngineRecord):
            yield from entries
            return
    raise TraceError(path, None, "no engine record in it: this is no trace", foreign=True)


def _alone(entries: Iterator[Entry]) -> Iterator[Record]:
    for _, _, what, place in entries:
        yield what.record(place) if isinstance(what, StepBlock) else what


def _together(entries: Iterator[Entry]) -> Iterator[Record | Steps]:
    """Neighbouring steps of a block as one piece; those before a fault too."""
    block: StepBlock | None = None
    start = stop = 0
    try:
        for _, _, what, place in entries:
            if what is block and place == stop:
                stop += 1
                continue
            if block is not None:
                yield Steps(block, start, stop)
                block = None
            if isinstance(what, StepBlock):
                block, start, stop = what, place, place + 1
            else:
                yield what
    except TraceError:
        if block is not None:
            yield Steps(block, start, stop)
        raise
    if block is not None:
        yield Steps(block, start, stop)
