"""A thousand requests with the engine killed in the middle: each client gets its answer or is told, and none waits.

The engine is a stand-in process (`fake_engine`), since a thousand real answers would take minutes.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable

from tests.console.fake_engine import fake_engine_process
from tests.console.gateway_process import DEADLINE, running_gateway
from tests.console.raw_client import raw_client

REQUESTS = 1000
AT_ONCE = 64
KILLED_AFTER = 300
BACK_AFTER = 600


async def _outcome(port: int, number: int, in_the_middle: Callable[[], None]) -> str:
    """What the client of one request was told; anything unclear is an error here."""
    stream = number % 2 == 0
    headers = (b"content-type: application/json", b"x-workload: w%d" % (number % 3))
    async with asyncio.timeout(DEADLINE), raw_client(port) as client:
        await client.post(json.dumps({"stream": stream}).encode(), *headers)
        status, lines = await client.read_head()
        if status == 200 and stream:
            body = await client.read_chunk()
            in_the_middle()
            body += b"".join(await client.read_chunks())
        else:
            body = await client.read_body(lines)
    if status != 200:
        assert status in (502, 503)
        assert any(line.startswith(b"retry-after: ") for line in lines)
        return str(json.loads(body)["error"]["code"])
    if not stream:
        assert json.loads(body)["choices"]
        return "answered"
    last = body.split(b"\n\n")[-2].removeprefix(b"data: ")
    return "answered" if last == b"[DONE]" else "cut: " + str(json.loads(last)["error"]["code"])


async def test_a_thousand_clients_get_an_answer_or_a_clean_error_when_the_engine_is_killed() -> None:
    outcomes: Counter[str] = Counter()
    numbers = iter(range(REQUESTS))
    back = asyncio.Event()

    def kill_in_the_middle() -> None:
        if outcomes.total() >= KILLED_AFTER and engine.poll() is None:
            engine.kill()
            engine.wait()

    async def client() -> None:
        for number in numbers:
            outcomes[await _outcome(gateway.port, number, kill_in_the_middle)] += 1
            if outcomes.total() >= BACK_AFTER:
                back.set()
        back.set()

    with running_gateway() as gateway:
        async with asyncio.timeout(2 * DEADLINE):
            with fake_engine_process(gateway.upstream, delay=0.03) as engine:
                clients = asyncio.gather(*(client() for _ in range(AT_ONCE)))
                await back.wait()
            with fake_engine_process(gateway.upstream, delay=0.0):
                await clients
        stats = gateway.stats()
    assert outcomes.total() == REQUESTS
    assert set(outcomes) == {
        "answered",
        "cut: engine_connection_lost",
        "engine_connection_lost",
        "engine_unavailable",
    }
    assert outcomes["answered"] >= KILLED_AFTER
    assert (stats["requests"], stats["cancelled"], stats["refused"]) == (REQUESTS, 0, 0)
    assert stats["unavailable"] == outcomes["engine_unavailable"]
