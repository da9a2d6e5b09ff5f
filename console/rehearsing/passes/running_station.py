"""The station that runs here, as the host of a rehearsal: its engine is as it is, and its policy is borrowed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Literal

from console.feed.client import Feed
from console.feed.messages import Snapshot
from console.feed.protocol import History, HistoryParams, PolicyResult, PolicySet
from console.rehearsing.found import Found, NothingToTry, find
from console.rehearsing.obstacles import no_loan, of_policy, of_topology, of_workload
from console.rehearsing.passes.host import ACTOR, PREFIX, HostFailed, Served
from store.rehearsal.plan import ADAPTIVE, Plan, fixed_k

_AUTOMATIC: Final = frozenset({"adaptive", "station"})
"""Who changes the policy by itself, also under a loan."""


_RESTART_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 0.5


class RunningStation:
    """`Host` over the feed of a station that goes on running."""

    kind: Literal["station"] = "station"
    prefix = PREFIX

    def __init__(self, feed: Feed, api_key: str | None, plan: Plan) -> None:
        self._feed = feed
        self._api_key = api_key
        self._plan = plan
        self._looked = False

    async def bring(self, drafting: bool, tell: Callable[[str], None]) -> Served:
        """Looks anew each time: what the operator did meanwhile may be in the way now."""
        if not drafting:
            raise HostFailed("the station's engine has a drafter: the arm `without` needs an engine of its own")
        if not self._looked:
            await end_left_loan(self._feed, tell)
        found = await self._found(tell)
        if hindrances := in_the_way(found, self._plan, self.prefix):
            raise HostFailed("; ".join(hindrances))
        return Served(self._feed, found.url, self._api_key, found.engine)

    async def _found(self, tell: Callable[[str], None]) -> Found:
        """In the middle of a rehearsal an engine that is just starting anew is waited for."""
        until = time.monotonic() + (_RESTART_SECONDS if self._looked else 0.0)
        self._looked = True
        waits = False
        while True:
            try:
                return await find(self._feed)
            except NothingToTry as error:
                if time.monotonic() >= until:
                    raise HostFailed(str(error)) from error
                if not waits:
                    tell(f"{error}: waiting for it")
                waits = True
            await asyncio.sleep(_LOOK_SECONDS)

    async def leave(self) -> None:
        """Nothing: it was there before."""


async def end_left_loan(feed: Feed, tell: Callable[[str], None]) -> None:
    """Give back what a rehearsal that was killed had borrowed, where the station has not done so yet. Only for one who
    knows that no other rehearsal goes on.

    Raises:
        FeedError: the station does not answer, or the policy has just changed.
    """
    seen = await feed.request("snapshot", None, Snapshot)
    if seen.unconfirmed is None:
        return
    history = await feed.request("policy_history", HistoryParams(), History)
    if next((one.actor for one in history.entries if one.actor not in _AUTOMATIC), None) != ACTOR:
        return
    left = seen.unconfirmed
    change = PolicySet(
        policy=left.reverts_to, cap=left.cap, fallback=left.fallback, expect=seen.policy_version,
        why="the rehearsal that set it was killed",
    )  # fmt: skip
    await feed.request("policy_set", change, PolicyResult)
    tell("the policy that a killed rehearsal had borrowed was given back")


def in_the_way(found: Found, plan: Plan, prefix: str) -> list[str]:
    """Why the arms of `plan` would not be executed as they are meant; empty: they would."""
    highest = _highest(plan, found.engine.max_k or 0)
    return [
        *of_topology(found.engine),
        *no_loan(found.snapshot),
        *of_policy(found.snapshot, highest),
        *(said for one in plan.mix for said in of_workload(found.snapshot, f"{prefix}{one.name}")),
    ]


def _highest(plan: Plan, max_k: int) -> int:
    """The longest draft that an arm asks for."""
    fixed = [k for arm in plan.arms if (k := fixed_k(arm)) is not None]
    free = [max_k for arm in plan.arms if arm == ADAPTIVE]
    return max([*fixed, *free], default=0)
