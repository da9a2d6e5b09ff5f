"""Borrows the policy of a running station and gives it back as it was, whatever happens in between.

A change is made to be confirmed and never is: if this process is killed, the station takes it back by itself. What is
borrowed for longer is asked for anew again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from console.feed.client import Feed, FeedError
from console.feed.messages import Snapshot
from console.feed.protocol import PolicyConfirm, PolicyResult
from console.rehearsing.terms import Terms, change_to, held, shown, word

CONFIRM_SECONDS: Final = 120.0
"""After so long the station takes back what nobody gave back."""

RENEW_SECONDS: Final = 60.0
"""So often a loan that is kept is asked for anew; where that fails, again before the station takes it back."""

_AGAIN_SECONDS: Final = 10.0

_TRIES: Final = 5
_TRY_SECONDS: Final = 0.2
"""Between two of them: a station that is just starting refuses at once."""
_ANSWER_SECONDS: Final = 5.0


class LoanRefused(Exception):
    """The policy could not be borrowed; says why."""


class Loan:
    """An asynchronous context: inside it `terms` hold under policy `version` or a later one.

    `kept`: for as long as it takes; else for `CONFIRM_SECONDS` at most. What somebody else sets meanwhile is not
    overridden: the loan is then at its end. `trouble` says afterwards what is not as it was before; `tell` hears of it
    where nobody looks, after an interrupt.
    """

    def __init__(self, feed: Feed, terms: Terms, why: str, tell: Callable[[str], None], *, kept: bool = False) -> None:
        self._feed = feed
        self._kept = kept
        self._keeper: asyncio.Task[None] | None = None
        self._unsure = False
        """Whether the last renewal got no answer: the deadline may be another one by now."""
        self._asked = terms.values()
        self._why = why
        self._tell = tell
        self._before: dict[str, Any] = {}
        self._returned: set[str] = set()
        self._confirm_by: float | None = None
        self.version = 0
        self.trouble: list[str] = []

    async def __aenter__(self) -> Self:
        try:
            self.version = await self._borrow()
        except BaseException as error:  # the change may have been made with its answer still under way
            await self.__aexit__(type(error), error, None)
            raise
        if self._kept:
            self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._give_back()
        if error is not None:  # then nobody else may look at it
            for trouble in self.trouble:
                self._tell(trouble)

    async def _borrow(self) -> int:
        for _ in range(_TRIES):
            seen = await self._look()
            self._before = {name: held(seen, name) for name in self._asked}
            change = change_to(self._asked, confirm=CONFIRM_SECONDS, expect=seen.policy_version, why=self._why)
            try:
                made = await self._feed.request("policy_set", change, PolicyResult, _ANSWER_SECONDS)
                self._confirm_by = made.confirm_by
                return made.version
            except FeedError as error:
                if error.code in ("deadline", "unreachable"):
                    raise
                self._before = {}
                if error.code != "refused" or (await self._look()).policy_version == seen.policy_version:
                    raise LoanRefused(f"the station refused the change: {error.message}") from error
        raise LoanRefused("the policy changes faster than it can be borrowed: try again when it is calmer")

    async def _keep(self) -> None:
        pause = RENEW_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = _AGAIN_SECONDS
            with contextlib.suppress(FeedError):
                await self._renew()
                pause = RENEW_SECONDS

    async def _renew(self) -> None:
        """Move the deadline on, if what was borrowed still stands under it and nobody has changed it."""
        seen = await self._look()
        pending = None if seen.unconfirmed is None else seen.unconfirmed.confirm_by
        if pending is None or (pending != self._confirm_by and not self._unsure):
            return
        if any(held(seen, name) != value for name, value in self._asked.items()):
            return
        why = f"{self._why} goes on"
        change = change_to(self._asked, confirm=CONFIRM_SECONDS, expect=seen.policy_version, why=why)
        self._unsure = True
        try:
            made = await self._feed.request("policy_set", change, PolicyResult, _ANSWER_SECONDS)
        except FeedError as error:
            self._unsure = error.code in ("deadline", "unreachable")
            raise
        self._confirm_by, self._unsure = made.confirm_by, False

    async def _give_back(self) -> None:
        failed = ""
        for _ in range(_TRIES):
            if not self._before:
                return
            try:
                await self._return(await self._look())
                self._before = {}
            except FeedError as error:
                failed = error.message
                await asyncio.sleep(_TRY_SECONDS)
        if self._before:
            self.trouble.append(
                f"the policy was not given back ({failed}): a station that still runs takes it back by itself within "
                f"{CONFIRM_SECONDS:.0f} s; see `specdeck policy get`"
            )

    async def _return(self, seen: Snapshot) -> None:
        """Put back what is still as it was borrowed, and let what stands then stay."""
        pending = None if seen.unconfirmed is None else seen.unconfirmed.confirm_by
        version = seen.policy_version
        ours = self._ours(seen)
        if ours:
            change = change_to(ours, confirm=None, expect=version, why=f"{self._why} is over")
            result = await self._feed.request("policy_set", change, PolicyResult, _ANSWER_SECONDS)
            pending, version = result.confirm_by, result.version
            self._returned.update(ours)
        unsure = self._confirm_by is None or self._unsure
        if pending is not None and (pending == self._confirm_by or (unsure and self._returned)):
            # Also what somebody else set meanwhile stands under our deadline: it is not to be taken back with ours.
            await self._feed.request("policy_confirm", PolicyConfirm(version=version), PolicyResult, _ANSWER_SECONDS)
        self._say_what_was_not_ours(seen)

    def _ours(self, seen: Snapshot) -> dict[str, Any]:
        """What is to be put back: values before."""
        return {
            name: before
            for name, before in self._before.items()
            if name not in self._returned and held(seen, name) == self._asked[name]
        }

    def _say_what_was_not_ours(self, seen: Snapshot) -> None:
        for name, before in self._before.items():
            if name in self._returned:
                continue
            now = held(seen, name)
            if now == before:
                self.trouble.append(
                    f"the station took the change of {shown(name)} back before it was over: `specdeck policy history` "
                    "tells why"
                )
            else:
                self.trouble.append(
                    f"{shown(name)} was changed to {word(now)} by somebody else meanwhile: that was left as it is "
                    f"(before: {word(before)})"
                )

    async def _look(self) -> Snapshot:
        return await self._feed.request("snapshot", None, Snapshot, _ANSWER_SECONDS)
