"""Which prompts and answers of a trace go along with a cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from engine.records import ControlRecord, Record, SequenceRecord, TextRecord
from store.answered import answered_as
from store.trace.chosen import Choice, Name
from store.trace.texts import is_mark, of_requests, without_text


class ChosenTexts:
    """Learns from the records of a trace, in the order of their time, of which requests the cut has rows."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._requests: dict[Name, str] = {}
        self._unknown: set[Name] = set()
        """Names that had a row before anything told whose they are."""
        self._with_rows: set[str] = set()
        self._told: list[tuple[float, str]] = []
        self._mark: ControlRecord | None = None

    def arrived(self, name: Name, sequence: SequenceRecord) -> None:
        if sequence.request is None:
            self._requests.pop(name, None)  # it may have been another's
            return
        self._requests[name] = answered_as(sequence.request)
        if name in self._unknown:
            self._unknown.remove(name)
            self._with_rows.add(self._requests[name])

    def rows_of(self, names: Iterable[Name]) -> None:
        """Rows in the cut."""
        for name in names:
            request = self._requests.get(name)
            if request is None:
                self._unknown.add(name)
            else:
                self._with_rows.add(request)

    def meet(self, record: Record) -> None:
        if isinstance(record, TextRecord):
            self._told.append((record.ts, record.request))
        elif is_mark(record):
            assert isinstance(record, ControlRecord)
            self._mark = record

    def around(
        self, cut: Callable[[Iterator[Record]], Iterator[Record]], records: Iterator[Record]
    ) -> Iterator[Record]:
        """What `cut` makes of `records`, once everything was learnt: told at its beginning if there is text in it."""
        kept = sum(self._wanted(ts, request) for ts, request in self._told)
        if not kept:
            return cut(without_text(records))
        return self._marked(kept, cut(self._without_others(records)))

    def _marked(self, kept: int, records: Iterator[Record]) -> Iterator[Record]:
        if self._mark is not None:
            yield replace(of_requests(self._mark, kept), actor="specdeck trace cut")
        yield from records

    def _without_others(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if isinstance(record, TextRecord):
                if self._wanted(record.ts, record.request):
                    yield record
            elif not is_mark(record):
                yield record

    def _wanted(self, ts: float, request: str) -> bool:
        return request in self._with_rows or (not self._choice.by_row and self._choice.inside(ts))
