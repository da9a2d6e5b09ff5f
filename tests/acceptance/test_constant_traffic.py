"""Traffic of constant concurrency, sent to a server that answers at once."""

from __future__ import annotations

import asyncio
from typing import Any

from console.traffic.client import Outcome
from console.traffic.plan import Planned
from console.traffic.prompts import WORKLOADS
from tests.acceptance.constant_traffic import ConstantTraffic


class QuickServer:
    """Keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[Planned] = []
        self.running = self.most = 0

    async def send(self, request: Planned, model: str) -> Outcome:
        self.sent.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.001)
        finally:
            self.running -= 1
        return Outcome(output_tokens=1)


def traffic(server: Any, streams: int) -> ConstantTraffic:
    return ConstantTraffic(server, "m", streams)


async def test_one_stream_sends_each_workload_once_a_turn_and_the_same_requests_for_the_same_seed() -> None:
    server, turns = QuickServer(), []
    async with traffic(server, 1) as sending:
        for _ in range(2):
            await asyncio.sleep(0.003)
            await sending.begin_again("round 1")
            begin = len(server.sent)
            await sending.turn()
            turns.append(server.sent[begin : begin + len(WORKLOADS)])
            assert begin + len(WORKLOADS) <= len(server.sent) <= begin + len(WORKLOADS) + 1
    assert server.most == 1
    assert sorted(one.workload for one in turns[0]) == sorted(WORKLOADS)
    assert turns[0] == turns[1]


async def test_sixteen_streams_keep_the_mix_and_the_concurrency() -> None:
    server = QuickServer()
    async with traffic(server, 16):
        while len(server.sent) < 64:
            await asyncio.sleep(0.001)
    assert server.most == 16
    for begin in (0, 32):
        mix = [one.workload for one in server.sent[begin : begin + 16]]
        assert {name: mix.count(name) for name in WORKLOADS} == dict.fromkeys(WORKLOADS, 4)
