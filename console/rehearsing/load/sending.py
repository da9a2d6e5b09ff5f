"""Sends the requests of a pass: each at its intended moment whatever became of the others, without any limit.

Moments are kept by the monotonic clock. Moment 0 is told as Unix seconds once, when it is chosen: a wall clock that is
set meanwhile moves nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final

from console.rehearsing.load.answer import Answer
from console.rehearsing.load.exchange import exchange
from console.rehearsing.load.request import body, events
from console.rehearsing.load.target import Target
from console.rehearsing.load.told import LoadProgress, LoadSummary, Tally
from store.rehearsal.records import DrawnRequest, Outcome

DRAIN_SECONDS: Final = 300.0
"""After the last request; what is unanswered then counts as a timeout."""
PROGRESS_SECONDS: Final = 1.0
_LEAD_SECONDS: Final = 0.1
"""From ready to moment 0: a request of moment 0 is not late from the start."""
_BEAT_SECONDS: Final = 0.1
"""How often it looks whether its own event loop is late."""
_CANCELLED: Final = ("cancelled", "the rehearsal was ended")


class Sender:
    """`where` with its addresses; `keep` takes each outcome, as it comes to it."""

    def __init__(
        self,
        where: Target,
        keep: Callable[[Outcome], None],
        *,
        model: str,
        tag_prefix: str = "",
        api_key: str | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._where = where
        self._keep = keep
        self._model = model
        self._tag_prefix = tag_prefix
        self._cache_salt = secrets.token_hex(16)
        self._api_key = api_key
        self._drain_seconds = drain_seconds
        self._loop = asyncio.get_running_loop()
        self._tally = Tally()
        self._tasks: set[asyncio.Task[None]] = set()
        self._given_up = _CANCELLED
        """Kind of error and detail of a request that is cancelled."""
        self._zero = 0.0

    async def send(self, requests: Sequence[DrawnRequest], on_progress: Callable[[LoadProgress], None]) -> LoadSummary:
        """All of `requests`, which are in the order of their moments, to their ends.

        Cancelled, it closes what is in flight and keeps it as `cancelled`; what was not sent has no outcome. An error
        of `keep` or of `on_progress` ends it in the same way.
        """
        gc.collect()
        gc.freeze()  # no pause for what stays anyway
        cpu = time.process_time()
        self._zero = self._loop.time() + _LEAD_SECONDS
        start = time.time() + (self._zero - self._loop.time())
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(on_progress))
                await self._send_all(group, requests)
                await self._drain()
                watching.cancel()
        except* Exception as failed:
            raise _first(failed) from failed
        finally:
            gc.unfreeze()
        on_progress(self._tally.progress(self._elapsed()))
        return self._tally.summary(start, max(0.0, self._elapsed()), time.process_time() - cpu)

    def _elapsed(self) -> float:
        return self._loop.time() - self._zero

    async def _send_all(self, group: asyncio.TaskGroup, requests: Sequence[DrawnRequest]) -> None:
        for request in requests:
            if (ahead := request.at - self._elapsed()) > 0:
                await asyncio.sleep(ahead)
            task = group.create_task(self._one(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        if not self._tasks:
            return
        await asyncio.wait(set(self._tasks), timeout=self._drain_seconds)
        self._given_up = ("timeout", f"no end within {self._drain_seconds:.0f} s of the last request")
        for task in self._tasks:
            task.cancel()

    async def _one(self, request: DrawnRequest) -> None:
        sent = self._elapsed()
        self._tally.began(sent - request.at)
        answer = Answer()
        with contextlib.suppress(asyncio.CancelledError):
            try:
                said = events(
                    self._where, body(request, self._model, self._tag_prefix, self._cache_salt), self._api_key
                )
                await exchange(self._where, said, answer, self._elapsed)
            finally:
                answer.fail(*self._given_up)  # says nothing where all is said
        self._tally.ended(answer.error, answer.detail)
        self._keep(_outcome(request, sent, answer))

    async def _watch(self, on_progress: Callable[[LoadProgress], None]) -> None:
        """Tell how it stands, and notice when the loop is late: then all that it notes may be."""
        due, tell = self._elapsed() + _BEAT_SECONDS, 0.0
        while True:
            await asyncio.sleep(due - self._elapsed())
            now = self._elapsed()
            self._tally.loop_was_late(now - due)
            if now >= tell:
                on_progress(self._tally.progress(now))
                tell = now + PROGRESS_SECONDS
            due = now + _BEAT_SECONDS


def _outcome(request: DrawnRequest, sent: float, answer: Answer) -> Outcome:
    return Outcome(
        id=request.id,
        at=request.at,
        phase=request.phase,
        workload=request.workload,
        sent=sent,
        first_token=answer.first_token,
        ended=answer.ended,
        request=answer.request,
        prompt_tokens=answer.prompt_tokens,
        output_tokens=answer.output_tokens,
        error=answer.error,
        detail=answer.detail,
    )


def _first(failed: ExceptionGroup[Exception]) -> Exception:
    one: BaseException = failed
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    assert isinstance(one, Exception)
    return one
