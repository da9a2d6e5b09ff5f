"""What the gateway keeps of prompts and answers: nothing, but while a recording asks for them again and again.

They are in memory alone, in bounds; `LEASE_SECONDS` after the last asking all of it is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from typing import Any, Final

import msgspec

from console.feed.texts import LEASE_SECONDS, Texts, TextsAsked
from console.gateway.asked_text import READ
from console.gateway.text_tap import MOST_BODY, TextTap
from engine.records import TextRecord

log = logging.getLogger(__name__)

MOST_HELD: Final = 32 * 1024 * 1024
"""Characters that are held at once, of answers on their way and of those that wait to be fetched."""
MOST_HANDED: Final = 1024 * 1024
"""Characters in one answer to the station, but for a single longer text."""
_BUSY: Final = (
    "prompts and answers are being recorded already, one recording at a time: end that one first; where it was killed "
    f"it ends by itself within {LEASE_SECONDS:.0f} s"
)


class TextsRefused(ValueError):
    """A message that cannot be meant; its text goes back to the sender."""


class Keeping:
    """What is kept for one recording."""

    def __init__(self, asked: TextsAsked) -> None:
        self.asked = asked
        self.since = time.time()
        self.left_out: Counter[str] = Counter()
        self.held = 0
        self.ending = False
        self.open: set[TextTap] = set()
        self._last = asked.after
        self._waiting: deque[tuple[int, int, TextRecord]] = deque()
        """Number, characters, what it is."""

    def may_hold(self, more: int) -> bool:
        """Takes the room for so many more characters if there is some."""
        if self.held + more > MOST_HELD:
            return False
        self.held += more
        return True

    def add(self, record: TextRecord, size: int) -> None:
        """`size`: characters, whose room was taken before."""
        self._last += 1
        self._waiting.append((self._last, size, record))

    def handed(self, after: int) -> Texts:
        """What comes after that number; what comes before is dropped."""
        while self._waiting and self._waiting[0][0] <= after:
            self.held -= self._waiting.popleft()[1]
        texts: list[TextRecord] = []
        size, last = 0, after
        for number, characters, record in self._waiting:
            if texts and size + characters > MOST_HANDED:
                break
            texts.append(record)
            size, last = size + characters, number
        return Texts(
            since=self.since, texts=texts, last=last, more=len(texts) < len(self._waiting),
            left_out=dict(self.left_out),
        )  # fmt: skip

    def finish_open(self) -> None:
        for tap in list(self.open):
            tap.lost("the recording ended before the answer did")

    def forget(self) -> None:
        self._waiting.clear()
        for tap in list(self.open):
            tap.drop()
        self.held = 0


class TextKeeper:
    """Of one gateway, on its event loop."""

    def __init__(self) -> None:
        self._keeping: Keeping | None = None
        self._lapse: asyncio.TimerHandle | None = None

    @property
    def wanted(self) -> bool:
        return self._keeping is not None and not self._keeping.ending

    def tap(self, path: str, body: bytes, *, vanilla: bool) -> TextTap | None:
        """What is to see the answer to a request go by; None while nobody asks, or where it can't be read.

        `vanilla`: it goes to the engine without speculation.
        """
        keeping = self._keeping
        if keeping is None or keeping.ending:
            return None
        if path not in READ:
            keeping.left_out[f"sent to {path}, whose form is not read"] += 1
            return None
        if len(body) > MOST_BODY:
            keeping.left_out[f"of more than {MOST_BODY >> 20} MiB"] += 1
            return None
        engine = keeping.asked.vanilla_engine if vanilla else keeping.asked.engine
        return TextTap(keeping, engine, path, body)

    def reply(self, message: Any) -> Texts:
        """The answer to one asking, of plain JSON types.

        Raises:
            TextsRefused: it cannot be meant.
        """
        try:
            asked = msgspec.convert(message, TextsAsked)
        except msgspec.ValidationError as error:
            raise TextsRefused(f"texts: {error}") from error
        if self._keeping is not None and self._keeping.asked.recording != asked.recording:
            return Texts(error=_BUSY)
        if self._keeping is None:
            if asked.end:  # it has lapsed: there is nothing any more
                return Texts(since=time.time(), last=asked.after)
            self._keeping = Keeping(asked)
            log.warning("prompts and answers are kept for a recording, until it ends")
        keeping = self._keeping
        self._hold_on()
        if asked.end:
            keeping.ending = True
            keeping.finish_open()
        handed = keeping.handed(asked.after)
        if asked.end and not handed.texts:
            self._forget()
        return handed

    def _hold_on(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
        self._lapse = asyncio.get_running_loop().call_later(LEASE_SECONDS, self._forget)

    def _forget(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        if self._keeping is not None:
            self._keeping.forget()
            self._keeping = None
            log.warning("no prompts and answers are kept any more")
