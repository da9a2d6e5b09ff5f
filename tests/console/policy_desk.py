"""A station's policy without processes and sockets: what is asked of it goes the same way, time is skipped by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
from msgspec.structs import replace

from console.feed.protocol import History, HistoryParams, PolicyConfirm, PolicyResult, PolicySet, PolicyUndo
from console.picturing.unconfirmed import with_workload
from console.station.confirming import Confirming
from console.station.policy import PolicyBook, PolicyPublisher
from console.station.policy_changes import PolicyChanges
from console.station.policy_set import policy_set
from console.station.policy_undo import policy_confirm, policy_history, policy_undo
from console.station.station import Station
from engine.policy import PolicyState, WorkloadPolicy
from engine.records import ControlRecord, PolicyMode
from store.database import Store
from store.ingest import Ingest

STATIC = PolicyMode(mode="static", k=4)
OFF = PolicyMode(mode="off")
ADAPTIVE = PolicyMode(mode="adaptive", act=True)


class Nobody:
    """Publishes to no engine."""

    async def send_all(self) -> None:
        pass


class Desk:
    """`writes` False: a disk that takes nothing, so that what was done is only in memory."""

    def __init__(self, folder: Path, store: Store, *, writes: bool = True, resume: bool = False) -> None:
        self.recorded: list[ControlRecord] = []
        self.told: list[str] = []
        self.skipped = 0.0
        self._ingest = Ingest(store)
        self._store = store
        self._writes = writes
        with store.connection.cursor() as cursor:
            floor = cursor.execute("SELECT coalesce(max(policy), 0) FROM controls").fetchall()[0][0]
        self.book = PolicyBook(folder / "policy.json", STATIC, owned="e0", resume=resume, floor=floor)
        publisher = cast(PolicyPublisher, Nobody())
        self.changes = PolicyChanges(self.book, publisher, self.record, lambda _, text: self.told.append(text))
        self.confirming = Confirming(self.changes, lambda: time.time() + self.skipped)
        self.station = cast(
            Station,
            SimpleNamespace(control=SimpleNamespace(book=self.book, changes=self.changes), recorder=self),
        )

    @property
    def state(self) -> PolicyState:
        return self.changes.state

    def record(self, control: ControlRecord) -> None:
        self.recorded.append(control)
        if self._writes:
            self._ingest.control(control)

    def flush_and_wait(self) -> bool:
        self._ingest.flush()
        return True

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._store.connection.cursor() as cursor:
            yield cursor

    def set(self, actor: str = "operator", /, **params: Any) -> PolicyResult:
        return asyncio.run(policy_set(self.station, PolicySet(**params), actor))

    def undo(self, version: int | None = None) -> PolicyResult:
        return asyncio.run(policy_undo(self.station, PolicyUndo(version=version), "operator"))

    def confirm(self, version: int | None = None) -> PolicyResult:
        return asyncio.run(policy_confirm(self.station, PolicyConfirm(version=version), "operator"))

    def history(self, **params: Any) -> History:
        return asyncio.run(policy_history(self.station, HistoryParams(**params), "operator"))

    def make(self, wanted: PolicyState, actor: str, **how: Any) -> PolicyState:
        return asyncio.run(self.changes.make(wanted, actor=actor, **how))

    def skip(self, seconds: float) -> None:
        """Let time pass; the station looks once."""
        self.skipped += seconds
        asyncio.run(self.confirming.look())


def learn(desk: Desk, workload: str, **own: Any) -> None:
    """As the controller changes a workload."""
    now = desk.state.workloads.get(workload, WorkloadPolicy())
    workloads = with_workload(desk.state.workloads, workload, replace(now, **own))
    desk.make(replace(desk.state, workloads=workloads), "adaptive", action="k")
