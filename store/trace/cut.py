"""Cuts a trace: by time, and by what its rows are of.

A cut can be read alone: it begins with the engines, the sequences that its rows name, and the controls that were in
force. A cut by time begins with what a judge knew by then, too (`store.states`), so that a replay of it judges like one
of the whole trace.

A cut by bucket or sequence keeps the facts of each step as they were, and of its rows the chosen ones. What is told
from a row alone stays right: acceptance, accepted length, waste, K. What is told from all rows of a step is not there
any more: how many it decoded, and with it step times and speedups. Such a cut says so in a control record, and begins
unknowing.

Of prompts and answers, where the trace holds any, a cut keeps those of requests that have a row in it; a cut by time
those, too, that came in in its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from engine.records import (
    CUT_ACTION,
    ControlRecord,
    EngineRecord,
    FinishRecord,
    Record,
    SequenceRecord,
    StateRecord,
    StepRecord,
    TextRecord,
)
from store.database import Store
from store.ingest import Ingest
from store.judging import Judging
from store.levels import FINEST
from store.rollup import roll_up
from store.source import take_in_pieces
from store.sql import only_row
from store.states import make_state
from store.trace.chosen import Choice, Chosen, Name
from store.trace.chosen_texts import ChosenTexts
from store.trace.convert import Converted, written
from store.trace.errors import TraceError
from store.trace.forms import ENDINGS
from store.trace.info import span_of
from store.trace.notes import TraceNotes
from store.trace.reading import Steps, read_pieces, read_records
from store.trace.whole_file import whole_file

ROWS_LEFT_OUT: Final = (
    "only chosen rows of each step are here: acceptance, waste and K are right; batch sizes, step times and speedups "
    "can't be told"
)


def cut(source: str | Path, out: str | Path, choice: Choice) -> Converted:
    """Write the chosen part of a trace.

    A cut by time begins at the whole 10 s before `choice.start`: a judge knows whole cells.

    Raises:
        TraceError: `source` can't be read, holds no step of the choice, or `out` can't be written.
    """
    source, out = Path(source), Path(out)
    notes = TraceNotes()
    with whole_file(out, ENDINGS) as partial:
        if choice.start > 0:
            choice = msgspec.structs.replace(choice, start=FINEST.floor(choice.start))
        names, texts = _named(source, choice)
        if not names:
            raise TraceError(source, None, f"it has no step of what was chosen; {_from_to(source)}")
        state = None if choice.by_row else _state(source, choice.start)
        cutter = _Cutter(Chosen(source, choice), choice, names, state)
        count = written(partial, texts.around(cutter.records, read_records(source, notes)), notes)
    said = [ROWS_LEFT_OUT] if choice.by_row else []
    return Converted(str(out), out.stat().st_size, count, said + notes.lines())


def _from_to(source: Path) -> str:
    start, end = span_of(source)
    return f"it goes from {start:.3f} to {end:.3f} (Unix seconds)"


def _named(source: Path, choice: Choice) -> tuple[set[Name], ChosenTexts]:
    """Sequences that have a row in the cut, and the text that goes with it."""
    chosen = Chosen(source, choice)
    named: set[Name] = set()
    texts = ChosenTexts(choice)
    for record in read_records(source):
        chosen.learn(record)
        if isinstance(record, StepRecord) and choice.inside(record.ts):
            here = [chosen.name(record.engine, row.seq) for row in chosen.rows(record)]
            named.update(here)
            texts.rows_of(here)
        elif isinstance(record, SequenceRecord):
            texts.arrived(chosen.name(record.engine, record.seq), record)
        else:
            texts.meet(record)
    return named, texts


def _state(source: Path, start: float) -> StateRecord | None:
    """What a judge of the trace knows at `start`; None where no step was before."""
    with Store.for_trace(source) as store:
        take_in_pieces(_before(source, start), Ingest(store))
        if only_row(store.connection, "SELECT count(*) FROM steps") == (0,):
            return None
        roll_up(store.connection, start)
        judging = Judging(store.connection)
        judging.catch_up()
        return make_state(judging, store.connection, start)


def _before(source: Path, start: float) -> Iterator[Record | Steps]:
    for piece in read_pieces(source):
        if not isinstance(piece, Steps):
            if piece.ts < start:
                yield piece
        elif max(piece.block.times[piece.start : piece.stop]) < start:
            yield piece
        else:
            for place in range(piece.start, piece.stop):
                if piece.block.times[place] < start:
                    yield Steps(piece.block, place, place + 1)


class _Cutter:
    def __init__(self, chosen: Chosen, choice: Choice, names: set[Name], state: StateRecord | None) -> None:
        self._chosen = chosen
        self._choice = choice
        self._names = names
        self._state = state
        self._engines: dict[str, EngineRecord] = {}
        self._controls: dict[tuple[str, str | None], ControlRecord] = {}
        self._sequences: dict[Name, SequenceRecord] = {}
        self._texts: list[TextRecord] = []

    def records(self, records: Iterator[Record]) -> Iterator[Record]:
        """The cut of `records`, which are in the order of their time."""
        begun = False
        late: dict[str, EngineRecord] = {}
        """Engines whose clock is past the cut: told when a record of theirs is inside all the same."""
        for record in records:
            self._chosen.learn(record)
            if not begun and self._choice.inside(record.ts):
                begun = True
                yield from self._beginning(record.ts)
            if isinstance(record, EngineRecord) and not begun:
                self._remember(record)
            elif isinstance(record, EngineRecord) and record.ts < self._choice.end:  # its clock may have been set back
                yield record
            elif isinstance(record, EngineRecord):
                late[record.engine] = record
            elif isinstance(record, TextRecord) and begun:
                yield record
            elif record.ts < self._choice.start or (not begun and isinstance(record, SequenceRecord | TextRecord)):
                self._remember(record)
            elif record.ts < self._choice.end or self._arrives(record):
                if not isinstance(record, ControlRecord | StateRecord | TextRecord) and record.engine in late:
                    yield late.pop(record.engine)
                kept = self._kept(record)
                if kept is not None:
                    yield kept

    def _arrives(self, record: Record) -> bool:
        """Whether rows in the cut are of this sequence: it came later than they where the clock was set back since."""
        return isinstance(record, SequenceRecord) and self._chosen.name(record.engine, record.seq) in self._names

    def _remember(self, record: Record) -> None:
        """What was before the cut, and may still count in it."""
        match record:
            case EngineRecord():
                self._engines[record.engine] = record
                for name in [name for name in self._sequences if name[0] == record.engine]:
                    del self._sequences[name]
            case ControlRecord():
                self._controls[record.action, record.workload] = record
            case SequenceRecord():
                self._sequences[self._chosen.name(record.engine, record.seq)] = record
            case FinishRecord():
                name = self._chosen.name(record.engine, record.seq)
                if name not in self._names:
                    self._sequences.pop(name, None)
            case StateRecord() if self._state is None and not self._choice.by_row:
                self._state = record
            case TextRecord():
                self._texts.append(record)

    def _beginning(self, ts: float) -> Iterator[Record]:
        """`ts`: of the first record of the cut."""
        yield from self._engines.values()
        before: list[Record] = [*self._controls.values(), *self._texts]
        before += [record for name, record in self._sequences.items() if name in self._names or self._goes_on(record)]
        yield from sorted(before, key=lambda record: record.ts)
        if self._choice.by_row:
            wanted = self._choice
            after = {
                "workload": wanted.workload, "context": wanted.context, "temperature": wanted.temperature,
                "sequences": sorted(wanted.sequences) or None,
            }  # fmt: skip
            yield ControlRecord(ts, "specdeck trace cut", CUT_ACTION, wanted.workload, None, after, why=ROWS_LEFT_OUT)
        if self._state is not None:
            yield self._state

    def _goes_on(self, record: SequenceRecord) -> bool:
        """Whether it was running when the cut began, though it has no row in it."""
        return not self._choice.by_row and record.ts < self._choice.start

    def _kept(self, record: Record) -> Record | None:
        if not self._choice.by_row:
            return record
        match record:
            case StepRecord():
                rows = self._chosen.rows(record)
                return msgspec.structs.replace(record, rows=rows) if rows else None
            case SequenceRecord() | FinishRecord():
                return record if self._chosen.name(record.engine, record.seq) in self._names else None
            case StateRecord():
                return None
        return record
