"""Where a rehearsal's engine comes from: a station that runs anyway, or one that is started for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, Protocol

from console.feed.client import Feed
from console.feed.messages import EngineView, Snapshot
from console.feed.protocol import Steps, StepsParams

PREFIX: Final = "rehearsal/"
"""Before the workloads' names in the tags of requests to a station that real workloads use."""


ACTOR: Final = "rehearsal"
"""Who changes the policy, for the record."""


PATIENCE_SECONDS: Final = 30.0
"""With a station on a machine that an engine keeps busy: one late answer is not to end an hour of work."""


class HostFailed(Exception):
    """No engine to rehearse on, or not any more: says why, and where more is to be read."""


class Served(NamedTuple):
    """An engine that serves. `url`: of the public port, without `/v1`; `fresh`: it was just started and has served
    nobody yet."""

    feed: Feed
    url: str
    api_key: str | None
    engine: EngineView
    fresh: bool = False

    async def boot(self) -> str:
        """Which process of the engine it is; another one after a restart."""
        return (await self.steps(limit=1)).boot

    async def steps(self, *, after: int = -1, limit: int = 5000) -> Steps:
        """Its last steps, those after number `after`."""
        params = StepsParams(engine=self.engine.engine, after=after, limit=limit)
        return await self.feed.request("steps", params, Steps, PATIENCE_SECONDS)

    async def snapshot(self) -> Snapshot:
        return await self.feed.request("snapshot", None, Snapshot, PATIENCE_SECONDS)


class Host(Protocol):
    """`kind` and `prefix` as the rehearsal's record has them."""

    @property
    def kind(self) -> Literal["own", "station"]: ...

    @property
    def prefix(self) -> str: ...

    async def bring(self, drafting: bool, tell: Callable[[str], None]) -> Served:
        """The engine with its drafter, or one without speculation, once it serves: the one that is up, else another.

        Args:
            tell: hears what is waited for.

        Raises:
            HostFailed: it does not come up, or no arm could be executed on it now.
            FeedError: the station does not answer.
        """
        ...

    async def leave(self) -> None:
        """End what was started."""
        ...


def own_engine(snapshot: Snapshot) -> EngineView | None:
    """The engine behind the public port."""
    return next((view for view in snapshot.engines if view.owned), None)
