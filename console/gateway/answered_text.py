"""The answer to a request as text, while it goes by: out of one JSON object, or of a stream of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Final

import msgspec

from console.gateway.asked_text import Unread
from engine.records import Passage

_DONE: Final = b"[DONE]"
_LONGEST_EVENT: Final = 4 * 1024 * 1024
_LONGEST_OBJECT: Final = 16 * 1024 * 1024
"""Bytes."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    function: _Function | None = None


class _Words(msgspec.Struct):
    """A message, or what an event adds to one."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    text: str | None = None
    message: _Words | None = None
    delta: _Words | None = None


class _Answer(msgspec.Struct):
    id: str | None = None
    choices: list[_Choice] | None = None


_answers: Final = msgspec.json.Decoder(_Answer)

_Place = tuple[int, str | None, int]
"""Choice, role, and which call of a tool."""


class AnswerText:
    """Takes the pieces of one answer's body. `events`: it is a stream of events; `most`: characters to keep of it."""

    def __init__(self, *, events: bool, most: int) -> None:
        self.request: str | None = None
        """The id that the client is answered with, None until it is known."""
        self.whole = False
        """Whether the end has come."""
        self.cut = False
        """Whether there was more than `most`."""
        self._events = events
        self._most = most
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._characters = 0
        self._texts: dict[_Place, StringIO] = {}

    @property
    def size(self) -> int:
        """What is held of it, characters and bytes."""
        return self._characters + self._rest_bytes

    def take(self, piece: bytes) -> None:
        """The next piece of the body.

        Raises:
            Unread: it has no form that is understood here.
        """
        if not self._events or b"\n" not in piece:
            self._keep(piece)
            return
        lines = b"".join((*self._rest, piece)).split(b"\n")
        self._forget_rest()
        self._keep(lines.pop())
        for line in lines:
            self._line(line)

    def end(self) -> None:
        """The body has come to its end. Raises Unread."""
        rest = b"".join(self._rest)
        self._forget_rest()
        if self._events:
            self._line(rest)
        else:
            self._add(rest)
            self.whole = self.request is not None

    def passages(self) -> Iterator[Passage]:
        """What was answered so far, choice by choice, each in the order in which its parts began."""
        for (choice, role, _), text in sorted(self._texts.items(), key=lambda item: item[0][0]):
            yield Passage(text.getvalue(), role, choice)

    def _keep(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._rest_bytes += len(piece)
        if self._rest_bytes > (_LONGEST_EVENT if self._events else _LONGEST_OBJECT):
            raise Unread("longer than any answer in text")

    def _forget_rest(self) -> None:
        self._rest, self._rest_bytes = [], 0

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line[len(b"data:") :].strip()
        if data == _DONE:
            self.whole = True
        else:
            self._add(data)

    def _add(self, data: bytes) -> None:
        try:
            answer = _answers.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unread("not as vLLM answers") from error
        self.request = self.request or answer.id
        for choice in answer.choices or ():
            for place, text in _said(choice):
                kept = text[: self._most - self._characters]
                self.cut |= len(kept) < len(text)
                self._texts.setdefault(place, StringIO(newline="")).write(kept)
                self._characters += len(kept)


def _said(choice: _Choice) -> Iterator[tuple[_Place, str]]:
    if choice.text:
        yield (choice.index, None, 0), choice.text
    for words in (choice.message, choice.delta):
        if words is not None:
            yield from _words(choice.index, words)


def _words(choice: int, words: _Words) -> Iterator[tuple[_Place, str]]:
    reasoning = words.reasoning or words.reasoning_content
    for role, text in (("reasoning", reasoning), (None, words.content), ("refusal", words.refusal)):
        if text:
            yield (choice, role, 0), text
    yield from _calls(choice, words.tool_calls or ())


def _calls(choice: int, calls: Iterable[_Call]) -> Iterator[tuple[_Place, str]]:
    """In a stream a call's name comes first, and its arguments piece by piece."""
    for number, call in enumerate(calls):
        if call.function is not None:
            place = (choice, "tool call", number if call.index is None else call.index)
            name = f"{call.function.name} " if call.function.name else ""
            yield place, name + (call.function.arguments or "")
