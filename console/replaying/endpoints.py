"""The feed's methods, bound to one replay. What would change something is refused: a recording stays as it is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from console.feed.bucket_detail import BucketDetailParams
from console.feed.fixed_window import FixedWindow
from console.feed.messages import ReplayView
from console.feed.protocol import (
    AlertsParams,
    BalanceParams,
    ExportParams,
    Hello,
    HistoryParams,
    ProcessesResult,
    ProcessView,
    ReplayAct,
    ReportParams,
    RequestRowsParams,
    SeriesParams,
    SideParams,
    StepsParams,
    StopParams,
    WhatIfParams,
)
from console.feed.server import Endpoint, FeedError
from console.feed.traces import Traces, TracesParams
from console.looking.looker import Looker
from console.replaying import queries
from console.replaying.acts import replay_act
from console.replaying.player import Player
from engine.sockets import Sockets

_READING: Final[dict[str, tuple[Any, Callable[[Player, Any], Any]]]] = {
    "series": (SeriesParams, queries.series),
    "buckets": (FixedWindow, queries.buckets),
    "bucket_detail": (BucketDetailParams, queries.bucket_detail),
    "report": (ReportParams, queries.report),
    "side": (SideParams, queries.side),
    "balance": (BalanceParams, queries.balance),
    "alerts": (AlertsParams, queries.alerts),
    "policy_history": (HistoryParams, queries.policy_history),
    "steps": (StepsParams, queries.steps),
    "request_rows": (RequestRowsParams, queries.request_rows),
    "export": (ExportParams, queries.export),
    "whatif": (WhatIfParams, queries.whatif),
    "map_get": (None, queries.map_get),
}
_CHANGING: Final = (
    "policy_set", "policy_undo", "policy_confirm", "engine_restart", "alert_act", "drill_done", "map_put",
    "rehearsal_start", "rehearsal_progress", "rehearsal_stop", "recording_begin", "recording_end", "demo_start",
    "demo_stop",
)  # fmt: skip


def endpoints(
    player: Player, sockets: Sockets, moved: Callable[[], None], stop: Callable[[], None], looker: Looker
) -> dict[str, Endpoint]:
    """`moved` is called when the clock stands elsewhere than the last picture showed."""
    found = {name: Endpoint(params, _reading(player, answer)) for name, (params, answer) in _READING.items()}
    found |= {name: Endpoint(None, partial(_refuse_change, player)) for name in _CHANGING}
    own: dict[str, Endpoint] = {
        "hello": Endpoint(None, partial(_hello, player)),
        "snapshot": Endpoint(None, _reading(player, lambda player, _: player.take())),
        "replay_act": Endpoint(ReplayAct, partial(_act, player, moved)),
        "traces": Endpoint(TracesParams, partial(_traces, looker)),
        "engine_log": Endpoint(None, _no_log),
        "processes": Endpoint(None, partial(_processes, player, sockets)),
        "stop": Endpoint(StopParams, partial(_stop, stop)),
    }
    return found | own


def _reading(player: Player, answer: Callable[[Player, Any], Any]) -> Callable[[Any, str], Awaitable[Any]]:
    async def answered(params: Any, actor: str) -> Any:
        return await asyncio.to_thread(answer, player, params)

    return answered


async def _hello(player: Player, _: None, actor: str) -> Hello:
    from importlib.metadata import version

    able = [*_READING, "snapshot", "replay_act", "traces", "processes", "stop"]
    return Hello(station=player.id, specdeck=version("specdeck"), capabilities=able, source="replay")


async def _act(player: Player, moved: Callable[[], None], params: ReplayAct, actor: str) -> ReplayView:
    view = await asyncio.to_thread(replay_act, player, params)
    moved()
    return view


async def _traces(looker: Looker, params: TracesParams, actor: str) -> Traces:
    return await looker.traces(params)


async def _refuse_change(player: Player, _: None, actor: str) -> None:
    raise FeedError("refused", f"{player.opened.path.name} is a recording: it can be looked at, not changed")


async def _no_log(_: None, actor: str) -> None:
    raise FeedError("refused", "a trace holds no engine log: it is where the engine ran")


async def _processes(player: Player, sockets: Sockets, _: None, actor: str) -> ProcessesResult:
    replay = ProcessView("replay", os.getpid(), True, str(player.opened.path))
    paths = {"feed": str(sockets.feed), "snapshots": str(sockets.snapshots)}
    return ProcessesResult([replay], paths, str(player.opened.store.path or player.opened.path), None)


async def _stop(stop: Callable[[], None], params: StopParams, actor: str) -> None:
    # The reply leaves first: the end of the feed waits for answers that are under way.
    asyncio.get_running_loop().call_soon(stop)
