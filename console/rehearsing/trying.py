"""Forces one way out on a request of the drill's own, with another beside it, and reads the rows of both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Final

from console.feed.certificate import WayResult
from console.feed.client import Feed
from console.feed.protocol import RequestRows, RequestRowsParams, RequestRowsResult, Steps, StepsParams
from console.rehearsing.client import Answered, NotServed, PublicPort
from console.rehearsing.loan import Loan, LoanRefused
from console.rehearsing.proving import decode_rows, drafted, faults, faults_beside, limits, unprovable
from console.rehearsing.ways import BESIDE, TAG, Way

ANSWER_TOKENS: Final = 32
_BESIDE_TOKENS: Final = 1024
_ROOM_FOR_PROMPT: Final = 64
_ROWS_SECONDS: Final = 20.0
_STEP_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.1

PROMPT: Final = "one two three four five six seven eight nine ten " * 3
"""Repeats itself, so that every drafter has something to propose."""


class RowsMissing(Exception):
    """What was executed for a request is not recorded."""


class Trying:
    """Requests through `port`, executed by `engine`, read back over `feed`."""

    def __init__(
        self, feed: Feed, port: PublicPort, engine: str, max_model_len: int | None, tell: Callable[[str], None]
    ) -> None:
        self._feed = feed
        self._port = port
        self._engine = engine
        self._beside_tokens = min(_BESIDE_TOKENS, (max_model_len or _BESIDE_TOKENS) - _ROOM_FOR_PROMPT)
        self._tell = tell

    async def control(self) -> RequestRows:
        """A request of the drill without any way out."""
        answered = await self._port.complete(PROMPT, ANSWER_TOKENS, TAG, header={}, body={})
        (rows,) = await self.rows([answered])
        return rows

    async def back(self) -> WayResult:
        """Whether speculation is there again."""
        try:
            found = await self.control()
        except (NotServed, RowsMissing) as error:
            return WayResult(way="back", passed=False, text=str(error))
        missing = unprovable(found)
        return WayResult(
            way="back", passed=missing is None, requests=[found.request], rows=len(decode_rows(found)),
            drafted=drafted(found), limits=limits(found),
            text=missing or f"afterwards a request drafts again: {drafted(found)} tokens",
        )  # fmt: skip

    async def way(self, way: Way) -> WayResult:
        """Force one way out. A way that can't be tried has not passed."""
        loan = None if way.policy is None else Loan(self._feed, way.policy, f"the drill of {way.shown}", self._tell)
        try:
            found = await self._forced(way, loan)
        except (NotServed, RowsMissing, LoanRefused) as error:
            return WayResult(way=way.name, passed=False, text=str(error))
        forced, *beside = found
        wrong = list(faults(forced, way.limit, self._engine))
        if way.beside is not None:
            wrong += [fault for one in beside for fault in faults_beside(forced, one)]
        wrong += loan.trouble if loan is not None else []
        return WayResult(
            way=way.name, passed=not wrong, requests=[rows.request for rows in found], rows=len(decode_rows(forced)),
            drafted=drafted(forced), limits=limits(forced), text="; ".join(wrong) or _held(way, forced, beside),
        )  # fmt: skip

    async def _forced(self, way: Way, loan: Loan | None) -> list[RequestRows]:
        """Rows of the forced request and of the one beside it."""
        async with AsyncExitStack() as stack:
            if loan is not None:
                await stack.enter_async_context(loan)
            beside = await stack.enter_async_context(self._beside(way.beside or BESIDE))
            await self._until_applied(0 if loan is None else loan.version)
            answered = await self._port.complete(PROMPT, ANSWER_TOKENS, TAG, header=way.header, body=way.body)
        return await self.rows([answered, Answered(beside, 0)])

    @asynccontextmanager
    async def _beside(self, tag: str) -> AsyncIterator[str]:
        """A request that runs meanwhile: its id."""
        first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            while True:  # one that is over before the forced request is followed by the next
                async with aclosing(self._port.stream(PROMPT, self._beside_tokens, tag)) as pieces:
                    async for request in pieces:
                        if not first.done():
                            first.set_result(request)

        task = asyncio.create_task(run())
        try:
            begun: set[asyncio.Future[Any]] = {task, first}
            await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield first.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _until_applied(self, policy: int) -> None:
        """Until the engine stamps its steps with this policy or a later one."""
        last = await self._feed.request("steps", StepsParams(engine=self._engine, limit=1), Steps)
        after = last.steps[-1].step if last.steps else -1
        until = time.monotonic() + _STEP_SECONDS
        while time.monotonic() < until:
            new = await self._feed.request("steps", StepsParams(engine=self._engine, after=after), Steps)
            if any(step.policy >= policy for step in new.steps):
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise RowsMissing(f"engine {self._engine} did not apply policy {policy} within {_STEP_SECONDS:.0f} s")

    async def rows(self, answers: Sequence[Answered]) -> list[RequestRows]:
        """The rows of these requests, once as many tokens are recorded as they were answered. Raises RowsMissing."""
        names = [answered.request for answered in answers]
        until = time.monotonic() + _ROWS_SECONDS
        while True:
            params = RequestRowsParams(requests=names)
            stored = {
                rows.request: rows
                for rows in (await self._feed.request("request_rows", params, RequestRowsResult, 15.0)).requests
            }
            found = [stored.get(name) for name in names]
            whole = [
                rows
                for rows, answered in zip(found, answers, strict=True)
                if rows is not None and rows.rows and sum(row.emitted for row in rows.rows) >= answered.tokens
            ]
            if len(whole) == len(answers):
                return whole
            if time.monotonic() > until:
                raise RowsMissing(_missing(answers, found))
            await asyncio.sleep(_LOOK_SECONDS)


def _missing(answers: Sequence[Answered], found: Sequence[RequestRows | None]) -> str:
    recorded = [0 if rows is None else sum(row.emitted for row in rows.rows) for rows in found]
    told = [
        f"{answered.request} ({tokens} of {answered.tokens} tokens)"
        for answered, tokens in zip(answers, recorded, strict=True)
    ]
    return f"not all that was answered is recorded after {_ROWS_SECONDS:.0f} s: {', '.join(told)}"


def _held(way: Way, forced: RequestRows, beside: Sequence[RequestRows]) -> str:
    where = f"0 tokens drafted in {len(decode_rows(forced))} rows, limit {', '.join(limits(forced))}"
    if way.beside is None:
        return where
    return f"{where}; beside it {sum(drafted(one) for one in beside)} were drafted"
