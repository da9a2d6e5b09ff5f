"""Watches one exchange go by, and makes a `TextRecord` of it. Whatever goes wrong here, the exchange never notices."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from console.gateway.answered_text import AnswerText
from console.gateway.asked_text import Unread, prompt_of
from console.gateway.headers import Headers, first
from engine.records import Passage, TextRecord

log = logging.getLogger(__name__)

MOST_BODY: Final = 8 * 1024 * 1024
"""Bytes of a request that is looked into."""
MOST_TEXT: Final = 1024 * 1024
"""Characters that are kept of a prompt, and of an answer."""
_EMPTY: Final = 100
UNREAD: Final = "of a form that is not read"
NO_ROOM: Final = "for which there was no room, too much text at once"
NO_ANSWER: Final = "that ended before there was anything of an answer"


class Keeper(Protocol):
    """Whom the text is for."""

    open: set[TextTap]
    left_out: Counter[str]
    held: int

    def may_hold(self, more: int) -> bool: ...

    def add(self, record: TextRecord, size: int) -> None: ...


class TextTap:
    def __init__(self, keeper: Keeper, engine: str, path: str, body: bytes) -> None:
        """`body`: of the request."""
        self._keeper: Keeper | None = keeper
        self._engine = engine
        self._ts = time.time()
        self._prompt: list[Passage] = []
        self._missing: list[str] = []
        self._answer: AnswerText | None = None
        self._held = 0
        keeper.open.add(self)
        self._safely(self._ask, path, body)

    def begin(self, status: int, headers: Headers) -> None:
        """The head of the answer."""
        self._safely(self._begin, status, headers)

    def take(self, piece: bytes) -> None:
        """A piece of its body."""
        self._safely(self._take, piece)

    def end(self) -> None:
        """Its body is whole."""
        self._safely(self._end)

    def lost(self, why: str) -> None:
        """There will be no more of it."""
        self._safely(self._lost, why)

    def drop(self, reason: str | None = None) -> None:
        """Forget everything. `reason`: to count it under, as left out."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.open.discard(self)
            keeper.held -= self._held
            if reason is not None:
                keeper.left_out[reason] += 1
        self._prompt, self._answer, self._held = [], None, 0

    def _safely(self, what: Callable[..., None], *values: Any) -> None:
        if self._keeper is None:
            return
        try:
            what(*values)
        except Unread:
            self.drop(UNREAD)
        except Exception as error:  # its message might hold text
            log.error("the text of a request was left out: %s", type(error).__name__)
            self.drop(UNREAD)

    def _ask(self, path: str, body: bytes) -> None:
        self._prompt, cut = _limited(prompt_of(path, body))
        if cut:
            self._missing.append(f"the prompt is cut after about {MOST_TEXT} characters")
        self._hold(sum(map(_size, self._prompt)))

    def _begin(self, status: int, headers: Headers) -> None:
        if status != 200:  # the engine refused it: nothing was generated
            self.drop()
            return
        kind = (first(headers, b"content-type") or b"").partition(b";")[0].strip().lower()
        if first(headers, b"content-encoding") is not None or kind not in (b"application/json", b"text/event-stream"):
            raise Unread("neither JSON nor events")
        self._answer = AnswerText(events=kind == b"text/event-stream", most=MOST_TEXT)

    def _take(self, piece: bytes) -> None:
        if self._answer is not None:
            before = self._answer.size
            self._answer.take(piece)
            self._hold(self._answer.size - before)

    def _end(self) -> None:
        if self._answer is None:
            raise Unread("a body without a head")
        before = self._answer.size
        self._answer.end()
        self._hold(self._answer.size - before)
        self._finish(None if self._answer is None or self._answer.whole else "the answer ended before its last event")

    def _lost(self, why: str) -> None:
        self._finish(why)

    def _finish(self, why: str | None) -> None:
        keeper, answer = self._keeper, self._answer
        if keeper is None:  # there was no room for the last of it
            return
        if answer is None or answer.request is None:
            self.drop(NO_ANSWER)
            return
        if answer.cut:
            self._missing.append(f"the answer is cut after {MOST_TEXT} characters")
        missing = "; ".join([*self._missing, *([why] if why else [])]) or None
        record = TextRecord(self._engine, self._ts, answer.request, self._prompt, list(answer.passages()), missing)
        size, self._held = self._held, 0
        keeper.add(record, size)
        self.drop()

    def _hold(self, more: int) -> None:
        if self._keeper is None:
            return
        if more <= 0 or self._keeper.may_hold(more):
            self._held += more
            self._keeper.held += min(more, 0)
        else:
            self.drop(NO_ROOM)


def _size(passage: Passage) -> int:
    """In characters, with what an empty one takes."""
    return len(passage.text) + _EMPTY


def _limited(passages: Iterable[Passage]) -> tuple[list[Passage], bool]:
    """As much of them as is kept, and whether there is more."""
    kept: list[Passage] = []
    room = MOST_TEXT
    for passage in passages:
        if _size(passage) > room:
            text = passage.text[: max(0, room - _EMPTY)]
            return ([*kept, Passage(text, passage.role, passage.number)] if text else kept), True
        kept.append(passage)
        room -= _size(passage)
    return kept, False
