"""What this console asked of the station, and how it went: kept in memory, the newest so many."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import msgspec

from console.app.commands.words import asked_words, command_of
from console.feed.client import Feed, FeedError, Update
from console.feed.protocol import Method, PolicyResult

KEPT: Final = 200

ACTING: Final[frozenset[Method]] = frozenset(
    {
        "policy_set", "policy_undo", "policy_confirm", "alert_act", "engine_restart", "export", "rehearsal_start",
        "rehearsal_stop", "record_text", "map_put", "drill_done", "stop", "recording_begin", "recording_end",
        "demo_start", "demo_stop",
    }
)  # fmt: skip
"""Methods that do something: the others only ask."""

Result = TypeVar("Result")
How = Literal["asked", "done", "refused", "failed", "unknown"]
"""`asked`: not answered yet. `unknown`: it was not heard whether it was done."""


@dataclass
class Asked:
    """`ts`: Unix seconds. `policy`: the version that came of it."""

    ts: float
    what: str
    command: str | None
    how: How = "asked"
    detail: str = ""
    policy: int | None = None


class CommandLog:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._asked: deque[Asked] = deque(maxlen=KEPT)
        self.began = now()
        """Since when this console is open, Unix seconds."""
        self.changes = 0
        """Counts what was added or answered."""

    def __iter__(self) -> Iterator[Asked]:
        return iter(self._asked)

    def begin(self, method: Method, params: msgspec.Struct | None) -> Asked:
        asked = Asked(self._now(), asked_words(method, params), command_of(method, params))
        self._asked.append(asked)
        self.changes += 1
        return asked

    def end(self, asked: Asked, how: How, detail: str = "", policy: int | None = None) -> None:
        asked.how, asked.detail, asked.policy = how, detail, policy
        self.changes += 1


class LoggedFeed:
    """A `Feed` that keeps what is asked through it. `plain`: the one underneath."""

    def __init__(self, plain: Feed, log: CommandLog) -> None:
        self.plain = plain
        self._log = log

    def snapshots(self) -> AsyncGenerator[Update, None]:
        return self.plain.snapshots()

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        if method not in ACTING:
            return await self.plain.request(method, params, result_type, timeout)
        asked = self._log.begin(method, params)
        try:
            result = await self.plain.request(method, params, result_type, timeout)
        except FeedError as error:
            self._log.end(asked, _how(error), error.message)
            raise
        except asyncio.CancelledError:
            self._log.end(asked, "unknown", "nobody waited for the answer")
            raise
        self._log.end(asked, "done", policy=result.version if isinstance(result, PolicyResult) else None)
        return result


def _how(error: FeedError) -> How:
    if error.code == "deadline":
        return "unknown"
    return "failed" if error.code in ("failed", "unreachable") else "refused"
