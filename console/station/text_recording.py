"""The station's part in a recording with text: it passes on what the gateway keeps, and lets everybody know meanwhile.

It keeps nothing of it. That text was recorded, by whom and into which file is in the history for good.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from console.feed.server import FeedError
from console.feed.texts import LEASE_SECONDS, Texts, TextsAsked, TextsWanted
from console.station.events import Condition
from console.station.options import OWNED_ENGINE, VANILLA_ENGINE
from engine.records import RECORD_TEXT_ACTION, ControlRecord

if TYPE_CHECKING:
    from console.station.station import Station

_ANSWER_SECONDS: Final = 1.0
"""How long the gateway has for its answer: its lease began at most so much earlier."""


class _Going(NamedTuple):
    recording: str
    file: str
    actor: str


class TextRecording:
    """The one that goes on, if any. On the event loop."""

    def __init__(
        self,
        gateway: Callable[[TextsAsked], Awaitable[Texts | None]],
        put: Callable[[ControlRecord], None],
        tell: Callable[[str, str], None],
    ) -> None:
        self._gateway = gateway
        self._put = put
        self._tell = tell
        self._going: _Going | None = None
        self._handed = 0
        self._lapse: asyncio.TimerHandle | None = None

    def conditions(self) -> list[Condition]:
        """What consoles show for as long as it goes on."""
        going = self._going
        if going is None:
            return []
        text = f"PROMPTS AND ANSWERS are being recorded by {going.actor} into {going.file}"
        return [Condition("text", "text_recorded", "warn", text)]

    def close(self) -> None:
        """The station ends: the gateway will not be asked again."""
        self._end("the station has ended")

    async def take(self, wanted: TextsWanted, actor: str) -> Texts:
        """Ask the gateway once. Raises FeedError where it doesn't answer, or keeps none for this recording."""
        asked = TextsAsked(
            recording=wanted.recording, after=wanted.after, end=wanted.end, engine=OWNED_ENGINE,
            vanilla_engine=VANILLA_ENGINE,
        )  # fmt: skip
        answer = await self._gateway(asked)
        if answer is None:
            raise FeedError(
                "unreachable", "the gateway does not answer, and without it nobody sees prompts and answers"
            )
        if answer.error is not None:
            raise FeedError("refused", f"no text is recorded: {answer.error}")
        if self._going is None or self._going.recording != wanted.recording:
            self._begin(wanted, actor)
        self._handed = max(self._handed, answer.last)
        if wanted.end and not answer.more:
            self._end("it has ended")
        else:
            self._hold_on()
        return answer

    def _begin(self, wanted: TextsWanted, actor: str) -> None:
        if wanted.end:
            return
        if self._going is not None:
            self._end("whoever recorded is gone")
        self._going = _Going(wanted.recording, wanted.file, actor)
        self._handed = 0
        self._note(f"records prompts and answers into {wanted.file}", on=True)

    def _end(self, how: str) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        if self._going is not None:
            what = f"prompts and answers of {self._handed} requests went into {self._going.file}"
            self._note(f"records no prompts and answers any more: {how}; {what}", on=False)
            self._going = None

    def _hold_on(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
        loop = asyncio.get_running_loop()
        self._lapse = loop.call_later(LEASE_SECONDS + _ANSWER_SECONDS, self._end, "whoever recorded is gone")

    def _note(self, text: str, *, on: bool) -> None:
        going = self._going
        assert going is not None
        after = {"recording": on, "file": going.file} | ({} if on else {"requests": self._handed})
        self._put(ControlRecord(time.time(), going.actor, RECORD_TEXT_ACTION, None, None, after, why=text))
        self._tell("text", f"{going.actor}: {text}")


async def record_text(station: Station, wanted: TextsWanted, actor: str) -> Texts:
    """Text is wanted for a few seconds more; what there is of it. Raises FeedError where none can be had."""
    if station.control is None:
        raise FeedError("refused", "this station only observes: no request passes through it, so there is no text")
    return await station.control.texts.take(wanted, actor)
