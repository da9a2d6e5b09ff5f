"""Prompts and answers in a trace: put in among its records, told at its beginning, taken out again.

A trace that holds text begins with a control that says so, and its engine records are of a format of their own: a
specdeck that doesn't know of text refuses it at once. Nobody but its owner can read the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec.structs import replace

from engine.records import (
    TEXT_ACTION,
    TEXT_VERSION,
    TRACE_VERSION,
    ControlRecord,
    EngineRecord,
    Record,
    TextRecord,
)

HOLDS_TEXT: Final = (
    "this file holds prompts and answers of requests; `specdeck trace convert --without-text` writes one without them"
)


def text_mark(since: float, until: float, requests: int, left_out: Mapping[str, int]) -> ControlRecord:
    """The beginning of a trace that holds text.

    Args:
        since: from when to `until` text was recorded, Unix seconds.
        left_out: reason → requests in that time whose text is not here.
    """
    after = {"since": since, "until": until, "requests": requests, "left_out": dict(left_out)}
    return ControlRecord(since, "specdeck trace record", TEXT_ACTION, None, None, after, why=HOLDS_TEXT)


def is_mark(record: Record) -> bool:
    return isinstance(record, ControlRecord) and record.action == TEXT_ACTION


def with_text(records: Iterable[Record], texts: Iterable[TextRecord], mark: ControlRecord) -> Iterator[Record]:
    """`records`, which hold none, with `texts` among them; both are in the order of their time. The mark comes first in
    that order, too, whatever else of before was still in force."""
    waiting = iter(texts)
    text = next(waiting, None)
    for number, record in enumerate(records):
        if not number:
            yield replace(mark, ts=min(mark.ts, record.ts))
        while text is not None and text.ts < record.ts and not isinstance(record, EngineRecord):
            yield text
            text = next(waiting, None)
        yield replace(record, v=TEXT_VERSION) if isinstance(record, EngineRecord) else record
    while text is not None:
        yield text
        text = next(waiting, None)


def without_text(records: Iterable[Record]) -> Iterator[Record]:
    """The same records but for the text, as if none had been recorded."""
    for record in records:
        if isinstance(record, EngineRecord):
            yield replace(record, v=min(record.v, TRACE_VERSION))
        elif not isinstance(record, TextRecord) and not is_mark(record):
            yield record


def begins_with_text(records: Iterable[Record]) -> tuple[bool, Iterator[Record]]:
    """Whether they say at their beginning that there is text among them; and the same records."""
    rest = iter(records)
    first = next(rest, None)
    if first is None:
        return False, rest
    return is_mark(first), chain((first,), rest)


def of_requests(mark: ControlRecord, requests: int) -> ControlRecord:
    """The mark of a part of a trace, which holds the text of so many."""
    return replace(mark, after={**(mark.after or {}), "requests": requests})


def left_out_text(mark: ControlRecord) -> str | None:
    """Of whose text is not there though it was asked for, as a sentence; None where all is."""
    found = (mark.after or {}).get("left_out")
    return left_out_words(found) if isinstance(found, dict) else None


def left_out_words(left_out: Mapping[str, int]) -> str | None:
    """Requests whose text was left out, by the reason."""
    if not left_out:
        return None
    return "text left out: " + ", ".join(f"{of_so_many(count)} {reason}" for reason, count in left_out.items())


def of_so_many(requests: int) -> str:
    return f"{requests} request" if requests == 1 else f"{requests} requests"
