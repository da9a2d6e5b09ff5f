"""Puts the records of a trace in the order of their time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from engine.records import EngineRecord
from store.trace.entries import Entry

SORTED_SECONDS: Final = 1.0
"""Records may be out of order by so much. One that comes later than this is passed on at once."""


def in_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Records of one time stay in the order of the file. An engine record is passed by nothing: what follows it in the
    file belongs to it, whatever the clocks say."""
    waiting: deque[Entry] = deque()
    newest = float("-inf")
    for entry in entries:
        ts = entry[0]
        if isinstance(entry[2], EngineRecord):
            yield from waiting
            waiting.clear()
            yield entry
            continue
        if ts >= newest:
            newest = ts
        if not waiting or ts >= waiting[-1][0]:
            waiting.append(entry)
        else:
            _insert(waiting, entry)
        while waiting and waiting[0][0] < newest - SORTED_SECONDS:
            yield waiting.popleft()
    yield from waiting


def _insert(waiting: deque[Entry], entry: Entry) -> None:
    """From the end, where its place is likely to be."""
    place = len(waiting)
    while place and waiting[place - 1][0] > entry[0]:
        place -= 1
    waiting.insert(place, entry)
