"""A feed in memory: gives out the snapshots it is handed and keeps what it was asked. No sockets, no clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec

from console.feed.client import FeedError, Silence, Update
from console.feed.messages import Snapshot
from console.feed.protocol import History, LogChunk, MapAnswer, Method, PolicyResult
from console.feed.traces import Traces
from engine.records import PolicyMode
from store.balance.records import Balance
from store.judge.reports import AlertHistory, AlertReport
from store.operating_map.records import OperatingMap
from tests.console import scenes, side_scenes, trace_scenes

Result = TypeVar("Result")


class MemoryFeed:
    """A `console.feed.client.Feed`. `refusal`: what every action is answered with, if anything."""

    def __init__(self, *updates: Update) -> None:
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        for update in updates:
            self._updates.put_nowait(update)
        self._asking = False
        self._last: Update | None = None
        self.log = LogChunk("~/.local/share/specdeck/logs/e0.log", scenes.LOG, len(scenes.LOG))
        self.asked: list[tuple[str, Any]] = []
        self.history = scenes.history()
        self.no_history: FeedError | None = None
        self.no_alerts: FeedError | None = None
        self.no_series: FeedError | None = None
        self.alerts: list[AlertReport] = scenes.alert_history()
        self.refusal: FeedError | None = None
        self.map: OperatingMap | None = None
        self.no_map: FeedError | None = None
        self.traces: Traces = trace_scenes.found()
        self.no_traces: FeedError | None = None
        self.no_windows: FeedError | None = None
        self.no_sides: FeedError | None = None
        self.balance: Balance | None = scenes.balance()
        """None: the station knows no such question."""
        self.few = False
        """A bucket has just begun."""
        self.thinking = asyncio.Event()
        """Set: a what-if is answered at once."""
        self.thinking.set()

    @property
    def taken_in(self) -> bool:
        """Everything said so far was drawn: the app has come back for more."""
        return self._updates.empty() and self._asking

    @property
    def connected(self) -> bool:
        return not isinstance(self._last, Silence)

    def say(self, update: Update) -> None:
        self._updates.put_nowait(update)

    def actions(self, method: str) -> list[Any]:
        return [params for asked, params in self.asked if asked == method]

    async def snapshots(self) -> AsyncGenerator[Update, None]:
        while True:
            self._asking = True
            self._last = await self._updates.get()
            self._asking = False
            yield self._last

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        built = msgspec.to_builtins(params) if params is not None else {}
        self.asked.append((method, built))
        if method == "series":
            if self.no_series is not None:
                raise self.no_series
            make = scenes.few_series if self.few else scenes.series
            answer: Any = make(scenes.BucketKey(*built["key"]), built["points"], built["seconds"])
        elif method == "bucket_detail":
            answer = (scenes.few_detail if self.few else scenes.bucket_detail)(scenes.BucketKey(*built["key"]))
        elif method == "buckets":
            if self.no_windows is not None:
                raise self.no_windows
            assert isinstance(self._last, Snapshot)
            answer = side_scenes.fixed(built["window"], self._last)
        elif method == "side":
            if self.no_sides is not None:
                raise self.no_sides
            answer = side_scenes.side(built)
        elif method == "engine_log":
            answer = self.log if built["offset"] != self.log.offset else LogChunk(self.log.path, "", self.log.offset)
        elif method == "policy_history":
            if self.no_history is not None:
                raise self.no_history
            answer = History(self.history)
        elif method == "alerts":
            if self.no_alerts is not None:
                raise self.no_alerts
            answer = AlertHistory(alerts=self.alerts)
        elif method == "map_get":
            if self.no_map is not None:
                raise self.no_map
            answer = MapAnswer(map=self.map)
        elif method == "traces":
            if self.no_traces is not None:
                raise self.no_traces
            answer = self.traces
        elif method == "balance":
            if self.balance is None:
                raise FeedError("unknown_method", "no method 'balance'")
            answer = self.balance
        elif self.refusal is not None:
            raise self.refusal
        elif method == "replay_act":
            answer = scenes.replay_view()
        elif method == "whatif":
            await self.thinking.wait()
            answer = [scenes.what_if(policy) for policy in built["policies"]]
        elif method == "policy_set":
            answer = self._policy(built)
        elif method in ("policy_undo", "policy_confirm"):
            answer = self._policy({"expect": built.get("expect") or built["version"]})
        else:
            answer = None
        return answer  # type: ignore[no-any-return]

    def _policy(self, built: dict[str, Any]) -> PolicyResult:
        """What a station answers that had nothing but the version that was expected."""
        policy = msgspec.convert(built.get("policy") or {"mode": "static", "k": 4}, PolicyMode)
        return PolicyResult(built["expect"] + 1, policy, built.get("cap"), bool(built.get("fallback")))
