"""The feed's answering end: versions, deadlines and errors are objects, and nothing a console sends takes it down."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.feed.protocol import Reply, Request, SeriesParams
from console.feed.server import Endpoint, FeedError, FeedServer
from engine.sockets import Sockets, ipc


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        yield Path(name)


async def echo(params: SeriesParams, actor: str) -> dict[str, Any]:
    return {"seconds": params.seconds, "actor": actor}


async def slow(_: None, actor: str) -> None:
    await asyncio.sleep(60)


async def refuse(_: None, actor: str) -> None:
    raise FeedError("refused", "not now: try tomorrow")


async def break_down(_: None, actor: str) -> None:
    raise RuntimeError("a fault of ours")


ENDPOINTS = {
    "echo": Endpoint(SeriesParams, echo),
    "slow": Endpoint(None, slow),
    "refuse": Endpoint(None, refuse),
    "break_down": Endpoint(None, break_down),
}


class Console:
    def __init__(self, context: zmq.asyncio.Context, sockets: Sockets) -> None:
        self._dealer = context.socket(zmq.DEALER)
        self._dealer.setsockopt(zmq.LINGER, 0)
        self._dealer.connect(ipc(sockets.feed))

    async def send(self, payload: bytes) -> Reply:
        await self._dealer.send(payload)
        async with asyncio.timeout(30):
            return msgspec.msgpack.decode(await self._dealer.recv(), type=Reply)

    async def ask(self, method: str, *, seconds: float = 30.0, **fields: Any) -> Reply:
        request = Request(id=7, method=method, deadline=time.time() + seconds, **fields)
        return await self.send(msgspec.msgpack.encode(request))

    def close(self) -> None:
        self._dealer.close()


@pytest.fixture
async def console(directory: Path) -> AsyncIterator[Console]:
    context = zmq.asyncio.Context()
    server = FeedServer(context, Sockets(directory), ENDPOINTS)
    serving = asyncio.create_task(server.serve())
    client = Console(context, Sockets(directory))
    yield client
    serving.cancel()
    client.close()
    server.close()
    context.term()


async def test_answers_carry_the_correlation_id_and_the_result(console: Console) -> None:
    reply = await console.ask("echo", params={"seconds": 5.0}, actor="ann")
    assert reply.id == 7
    assert reply.error is None
    assert msgspec.msgpack.decode(reply.result) == {"seconds": 5.0, "actor": "ann"}


async def test_a_console_of_another_version_is_told_which_side_to_update(console: Console) -> None:
    reply = await console.ask("echo", v=99)
    assert reply.error is not None
    assert reply.error.code == "version"
    assert "update the station" in reply.error.message


async def test_an_unknown_method_names_those_there_are(console: Console) -> None:
    reply = await console.ask("dance")
    assert reply.error is not None
    assert reply.error.code == "unknown_method"
    assert "echo" in reply.error.message


async def test_params_of_the_wrong_type_name_the_field(console: Console) -> None:
    reply = await console.ask("echo", params={"seconds": "long"})
    assert reply.error is not None
    assert reply.error.code == "bad_params"
    assert "seconds" in reply.error.message


@pytest.mark.parametrize("seconds", [-1.0, 0.05])
async def test_a_deadline_that_passes_is_an_answer_too(console: Console, seconds: float) -> None:
    reply = await console.ask("slow", seconds=seconds)
    assert reply.error is not None
    assert reply.error.code == "deadline"


async def test_a_slow_request_delays_no_other(console: Console, directory: Path) -> None:
    waiting = asyncio.create_task(console.ask("slow", seconds=0.5))
    other = zmq.asyncio.Context()
    second = Console(other, Sockets(directory))
    reply = await second.ask("echo")
    assert reply.error is None
    assert not waiting.done()
    await waiting
    second.close()
    other.term()


@pytest.mark.parametrize(("method", "code"), [("refuse", "refused"), ("break_down", "failed")])
async def test_refusals_and_faults_come_back_as_errors(console: Console, method: str, code: str) -> None:
    reply = await console.ask(method)
    assert reply.error is not None
    assert reply.error.code == code
    assert (await console.ask("echo")).error is None


@given(payload=st.binary(max_size=200))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_bytes_arrive_the_feed_goes_on(payload: bytes) -> None:
    async def scenario() -> None:
        with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
            context = zmq.asyncio.Context()
            server = FeedServer(context, Sockets(Path(name)), ENDPOINTS)
            serving = asyncio.create_task(server.serve())
            client = Console(context, Sockets(Path(name)))
            reply = await client.send(payload)
            assert reply.error is not None
            assert (await client.ask("echo")).error is None
            serving.cancel()
            client.close()
            server.close()
            context.term()

    asyncio.run(scenario())
