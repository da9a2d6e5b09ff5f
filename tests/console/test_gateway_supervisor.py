"""The station's side of the gateway: its arguments, and a lane table that every gateway gets and none loses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import zmq.asyncio

from console.station.gateway_control import GatewayStats
from console.station.gateway_supervisor import GatewaySupervisor
from console.station.options import StationOptions
from engine.sockets import Sockets
from tests.console.gateway_process import DEADLINE, ask
from tests.console.station_harness import free_port, living


class Supervised:
    """A supervisor at work, and what it has told."""

    def __init__(self, folder: Path, **overrides: object) -> None:
        self.told: list[str] = []
        self.sockets = Sockets(folder)
        self.context = zmq.asyncio.Context()
        options = StationOptions(store=str(folder / "store"), **({"port": free_port()} | overrides))  # type: ignore[arg-type]
        self.supervisor = GatewaySupervisor(
            options,
            self.sockets,
            self.context,
            folder / "gateway.log",
            lambda kind, text: self.told.append(text),
            vanilla_upstream=folder / "vanilla",
        )

    def table(self) -> dict[str, object]:
        found: dict[str, object] = ask(self.sockets.gateway_control, {"get": "table"})["table"]
        return found

    async def until_table(self, version: int) -> dict[str, object]:
        while True:
            table = await asyncio.to_thread(self.table)
            if table["version"] == version:
                return table
            await asyncio.sleep(0.05)

    async def until_pid(self, *, other_than: int | None = None) -> int:
        while (pid := self.supervisor.view().pid) is None or pid == other_than or self.supervisor.stats is None:
            await asyncio.sleep(0.02)
        return pid


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sds") as name:
        yield Path(name)


@contextlib.asynccontextmanager
async def _running(supervised: Supervised, *, leave: bool = False) -> AsyncIterator[None]:
    task = asyncio.create_task(supervised.supervisor.run())
    try:
        async with asyncio.timeout(DEADLINE):
            yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        if not leave:
            await supervised.supervisor.stop()
        supervised.context.term()


async def test_lanes_reach_the_gateway_and_the_one_that_takes_its_place(folder: Path) -> None:
    supervised = Supervised(folder)
    async with _running(supervised):
        first = await supervised.until_pid()
        supervised.supervisor.work_by(3, {"hostile": "vanilla"})
        wanted = {"version": 3, "lanes": {"hostile": "vanilla"}}
        assert await supervised.until_table(3) == wanted
        os.kill(first, signal.SIGKILL)
        await supervised.until_pid(other_than=first)
        assert await supervised.until_table(3) == wanted
        stats = supervised.supervisor.stats
        assert stats is not None
        assert (stats.vanilla_engine, stats.vanilla_ok, stats.upstream_ok) == (True, False, False)
        told = await asyncio.to_thread(ask, supervised.sockets.gateway_control, {"get": "stats"})
        assert set(GatewayStats.__struct_fields__) <= set(told), "no count is zero for its name alone"


async def test_a_refused_table_is_told_once_with_its_reason_and_the_one_before_stays(folder: Path) -> None:
    supervised = Supervised(folder)
    async with _running(supervised):
        supervised.supervisor.work_by(1, {"hostile": "vanilla"})
        await supervised.until_table(1)
        supervised.supervisor.work_by(2, {" blank ": "vanilla"})
        while not any("' blank '" in text for text in supervised.told):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.6)  # longer than it takes to look again
        assert sum("' blank '" in text for text in supervised.told) == 1
        assert (await supervised.until_table(1))["lanes"] == {"hostile": "vanilla"}


async def test_an_adopted_gateway_keeps_its_lanes_until_the_station_says_others(folder: Path) -> None:
    port = free_port()
    before = Supervised(folder, port=port)
    async with _running(before, leave=True):
        before.supervisor.work_by(7, {"hostile": "vanilla"})
        await before.until_table(7)
        pid = await before.until_pid()
    after = Supervised(folder, port=port)
    async with _running(after):
        assert await after.until_pid() == pid
        assert after.table()["version"] == 7
        after.supervisor.work_by(8, {})
        assert await after.until_table(8) == {"version": 8, "lanes": {}}
    assert not living([pid])


@pytest.mark.parametrize(
    ("options", "expected"), [({"drafter": "none"}, True), ({"method": "none"}, True), ({"drafter": "ngram"}, False)]
)
async def test_the_gateway_is_told_when_the_engine_does_not_draft(
    folder: Path, options: dict[str, object], expected: bool
) -> None:
    supervised = Supervised(folder, **options)
    async with _running(supervised):
        command = psutil.Process(await supervised.until_pid()).cmdline()
    assert ("--no-speculation" in command) is expected
    assert command[command.index("--vanilla-upstream") + 1] == str(folder / "vanilla")
