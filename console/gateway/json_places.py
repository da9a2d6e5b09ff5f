"""The members of a JSON object with their places in the text, so that an edit touches nothing else.

Every value is read by Python's own `json`, which is what vLLM reads bodies with: a reader of another temper would
disagree with it about `NaN`, names that come twice, or lone surrogates, and the gateway about what the engine will see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


class Member(NamedTuple):
    """`start` is where its name begins, `value_start` its value, `end` where the value has ended."""

    name: str
    value: Any
    start: int
    value_start: int
    end: int


class JsonObject(NamedTuple):
    """`open` is the place after `{`; `end` the place after `}`."""

    members: tuple[Member, ...]
    open: int
    end: int

    def last(self, name: str) -> Member | None:
        """The member of that name that counts: as for `json`, the last one."""
        return next((member for member in reversed(self.members) if member.name == name), None)


class Edit(NamedTuple):
    """Replaces the text between two places."""

    start: int
    end: int
    text: str


def read_object(text: str) -> JsonObject:
    """The object that the whole text is.

    Raises:
        ValueError: it is no JSON object.
        RecursionError: it is nested too deeply for `json`.
    """
    found = read_object_at(text, _skip(text, 0))
    if _skip(text, found.end) != len(text):
        raise ValueError(f"more text after the object, at {found.end}")
    return found


def read_object_at(text: str, at: int) -> JsonObject:
    """The object whose `{` is at `at`. Raises as `read_object` does."""
    _expect(text, at, "{")
    opened, members = at + 1, []
    at = _skip(text, opened)
    if text[at : at + 1] == "}":
        return JsonObject((), opened, at + 1)
    while True:
        member = _read_member(text, at)
        members.append(member)
        at = _skip(text, member.end)
        if text[at : at + 1] == "}":
            return JsonObject(tuple(members), opened, at + 1)
        _expect(text, at, ",")
        at = _skip(text, at + 1)


def removals(found: JsonObject, name: str) -> Iterable[Edit]:
    """The edits that take out every member of that name, each with one comma."""
    last_kept = max((i for i, member in enumerate(found.members) if member.name != name), default=-1)
    for index, member in enumerate(found.members):
        if member.name != name:
            continue
        if index < last_kept:
            yield Edit(member.start, found.members[index + 1].start, "")
        else:
            yield Edit(found.members[index - 1].end if index else member.start, member.end, "")


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits that do not overlap applied; of two at one place the one that inserts comes first."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _read_member(text: str, at: int) -> Member:
    _expect(text, at, '"')
    name, end = _DECODER.raw_decode(text, at)
    colon = _skip(text, end)
    _expect(text, colon, ":")
    value_start = _skip(text, colon + 1)
    value, end = _DECODER.raw_decode(text, value_start)
    return Member(name, value, at, value_start, end)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None  # it matches nothing, too
    return match.end()


def _expect(text: str, at: int, sign: str) -> None:
    if text[at : at + 1] != sign:
        raise ValueError(f"expected {sign} at {at}")
