"""Keeps a channel from being flooded: so many messages a minute, what comes meanwhile goes with the next. Pure.

Nothing is lost without being counted: a message says how much of it had to wait, and how much more there was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from console.notices.watch import Notice, identity

SPAN_SECONDS: Final = 60.0
MOST_WAITING: Final = 100


class Message(NamedTuple):
    """`notices`: the gravest first, of those that are as grave the oldest; at least one."""

    notices: list[Notice]
    held_back: int = 0
    """Of these, how many the limit made wait."""
    left_out: int = 0
    """How many more there were than are kept: only their number is known."""
    left_out_critical: int = 0
    """Of those, how many were critical."""


class Limiter:
    """At most `most` messages in any `SPAN_SECONDS`. Times are seconds of any clock; one that is set back is borne.

    What is to be told gathers for `gather` seconds first, so that what happens together is told together.
    """

    def __init__(self, most: int, *, gather: float = 1.0, room: int = MOST_WAITING) -> None:
        self._gather = gather
        self._room = room
        self._sent: deque[float] = deque(maxlen=most)
        self._waiting: list[Notice] = []
        self._since: float | None = None
        self._held = 0
        """Of those that wait, how many came before the limit was the reason."""
        self._left_out = 0
        self._left_out_critical = 0

    @property
    def waiting(self) -> int:
        """How many wait to be told."""
        return len(self._waiting)

    def add(self, notices: Iterable[Notice], now: float) -> None:
        """More to tell. Where there is no room for all the least grave go, of those the oldest."""
        for notice in notices:
            told = self._joined(notice) if notice.what == "over" else notice
            self._waiting.append(told)
            if self._since is None:
                self._since = now
            if len(self._waiting) > self._room:
                self.give_up([self._waiting.pop(self._least())])

    def give_up(self, notices: Iterable[Notice], *, more: int = 0, more_critical: int = 0) -> None:
        """These can't be told: the next message counts them. `more`: what they had counted themselves."""
        for notice in notices:
            self._left_out += 1
            self._left_out_critical += notice.rank == 2
        self._left_out += more
        self._left_out_critical += more_critical

    def due(self, now: float) -> Message | None:
        """The message to send now, which counts as sent; None for none."""
        self._set_back(now)
        if self._since is None or now - self._since < self._gather:
            return None
        if len(self._sent) == self._sent.maxlen and now - self._sent[0] < SPAN_SECONDS:
            self._held = len(self._waiting)
            return None
        message = Message(
            sorted(self._waiting, key=lambda notice: -notice.rank), min(self._held, len(self._waiting)),
            self._left_out, self._left_out_critical,
        )  # fmt: skip
        self._sent.append(now)
        self._waiting, self._since = [], None
        self._held = self._left_out = self._left_out_critical = 0
        return message

    def _joined(self, over: Notice) -> Notice:
        """The end of an alert, with its beginning where that still waits: one that came and went is told once."""
        if over.alert is None:
            return over
        whose = identity(over.alert)
        same = [one for one in self._waiting if one.alert is not None and identity(one.alert) == whose]
        if not any(one.what == "fires" for one in same):
            return over
        self._waiting = [one for one in self._waiting if one not in same]
        return Notice("passed", max(same, key=lambda one: one.rank).severity, over.text, over.alert)

    def _least(self) -> int:
        return min(range(len(self._waiting)), key=lambda index: (self._waiting[index].rank, index))

    def _set_back(self, now: float) -> None:
        """A clock that was set back must not keep anything from being told for longer than the span."""
        if self._since is not None:
            self._since = min(self._since, now)
        if self._sent and self._sent[-1] > now:
            self._sent = deque((min(ts, now) for ts in self._sent), maxlen=self._sent.maxlen)
