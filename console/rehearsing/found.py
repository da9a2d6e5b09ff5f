"""The station and the engine that a rehearsal or a drill is about, as they are found."""

from __future__ import annotations

from typing import NamedTuple

from console.feed.client import Feed
from console.feed.messages import EngineView, Snapshot
from console.feed.protocol import Steps, StepsParams


class NothingToTry(Exception):
    """There is no engine behind the public port, or none that serves: says which."""


class Found(NamedTuple):
    """`step`: the last one that the engine made until now; -1 for none."""

    snapshot: Snapshot
    engine: EngineView
    url: str
    boot: str
    step: int


async def find(feed: Feed) -> Found:
    """Look at the station.

    Raises:
        NothingToTry: no engine serves behind the public port.
    """
    snapshot = await feed.request("snapshot", None, Snapshot)
    if snapshot.gateway is None or snapshot.policy is None:
        raise NothingToTry("this station only observes an engine: its policy and its port are elsewhere")
    last = await feed.request("steps", StepsParams(limit=1), Steps)
    engine = next((view for view in snapshot.engines if view.engine == last.engine and view.owned), None)
    if engine is None:
        raise NothingToTry("the station runs no engine of its own: nothing answers behind its public port")
    if engine.state != "serving":
        raise NothingToTry(f"engine {engine.engine} is {engine.state}: {engine.detail or 'wait until it serves'}")
    if not engine.max_k:
        raise NothingToTry(f"engine {engine.engine} has no drafter: there is no speculation to turn down")
    step = last.steps[-1].step if last.steps else -1
    return Found(snapshot, engine, snapshot.gateway.url, last.boot, step)
