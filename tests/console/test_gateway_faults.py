"""When there is no answer to pass on, the client is told at once and in the shape its library knows."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.console.fake_engine import Call, chat_engine, fake_engine
from tests.console.gateway_process import DEADLINE, Gateway, running_gateway
from tests.console.raw_client import raw_client


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with running_gateway("--max-body", "1000000") as process:
        yield process


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=DEADLINE) as http:
        yield http


async def _until(gateway: Gateway, **expected: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while any(gateway.stats()[name] != value for name, value in expected.items()):
            await asyncio.sleep(0.02)


def _openai_error(body: bytes) -> dict[str, object]:
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return dict(error)


@pytest.mark.parametrize("left_over", ["nothing", "a stale socket", "a socket bound but not yet listening"])
async def test_without_an_engine_the_answer_is_503_with_a_time_to_retry(
    gateway: Gateway, client: httpx.AsyncClient, left_over: str
) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        if left_over != "nothing":
            bound.bind(str(gateway.upstream))
        if left_over == "a stale socket":
            bound.close()
        answer = await client.post(gateway.url + "/v1/chat/completions", json={"stream": True})
        stats = gateway.stats()
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    error = _openai_error(answer.content)
    assert error["code"] == "engine_unavailable"
    assert "specdeck status" in str(error["message"])
    assert (stats["upstream_ok"], stats["errors"], stats["unavailable"], stats["active"]) == (False, 0, 1, 0)


async def test_the_engine_is_found_as_soon_as_it_is_there_and_again_after_a_restart(
    gateway: Gateway, client: httpx.AsyncClient
) -> None:
    for _ in range(2):
        assert (await client.get(gateway.url + "/v1/models")).status_code == 503
        async with fake_engine(gateway.upstream, chat_engine()):
            assert (await client.get(gateway.url + "/v1/models")).status_code == 200
            assert gateway.stats()["upstream_ok"]


async def test_an_engine_lost_before_its_answer_is_502(gateway: Gateway, client: httpx.AsyncClient) -> None:
    async def die(call: Call) -> None:
        call.die()

    async with fake_engine(gateway.upstream, die):
        answer = await client.post(gateway.url + "/v1/chat/completions", json={})
    assert answer.status_code == 502
    assert _openai_error(answer.content)["code"] == "engine_connection_lost"


async def test_an_engine_lost_inside_a_json_answer_is_502(gateway: Gateway, client: httpx.AsyncClient) -> None:
    async def half(call: Call) -> None:
        await call.send(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"choi')
        call.die()

    async with fake_engine(gateway.upstream, half):
        answer = await client.post(gateway.url + "/v1/chat/completions", json={})
    assert answer.status_code == 502
    assert _openai_error(answer.content)["code"] == "engine_connection_lost"


@pytest.mark.parametrize("sent", [b"data: 1\n\n", b"data: 1\n\ndata: {half an eve"])
async def test_an_engine_lost_inside_a_stream_ends_it_with_an_error_event(gateway: Gateway, sent: bytes) -> None:
    async def half(call: Call) -> None:
        await call.start_events()
        await call.chunk(sent)
        call.die()

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, half), raw_client(gateway.port) as client:
        await client.post()
        status, _ = await client.read_head()
        body = b"".join(await client.read_chunks())
    assert status == 200
    assert body.startswith(sent)
    *_, last, empty = body.split(b"\n\n")
    assert empty == b""
    assert _openai_error(last.removeprefix(b"data: "))["code"] == "engine_connection_lost"
    await _until(gateway, errors=1, active=0)


async def test_an_engine_lost_inside_any_other_body_leaves_that_body_visibly_short(
    gateway: Gateway, client: httpx.AsyncClient
) -> None:
    async def half(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: 99\r\n\r\nRIFF")
        call.die()

    async with fake_engine(gateway.upstream, half):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(gateway.url + "/audio")
    await _until(gateway, errors=1, active=0)


async def test_an_answer_that_is_not_http_is_502(gateway: Gateway, client: httpx.AsyncClient) -> None:
    async def babble(call: Call) -> None:
        await call.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await call.client_left()

    async with fake_engine(gateway.upstream, babble):
        answer = await client.get(gateway.url + "/")
    assert answer.status_code == 502
    assert _openai_error(answer.content)["code"] == "engine_bad_response"


@pytest.mark.parametrize("moment", ["before the answer", "inside a stream", "inside a held answer"])
async def test_a_client_that_leaves_is_seen_by_the_engine(gateway: Gateway, moment: str) -> None:
    reached, left = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> None:
        if moment == "inside a stream":
            await call.start_events()
            await call.chunk(b"data: 1\n\n")
        if moment == "inside a held answer":
            await call.send(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"choi')
        reached.set()
        await call.client_left()
        left.set()

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, wait):
        async with raw_client(gateway.port) as client:
            await client.post()
            await reached.wait()
        await left.wait()
        await _until(gateway, cancelled=1, active=0, errors=0)


async def test_a_body_over_the_limit_is_413_declared_or_not(gateway: Gateway, client: httpx.AsyncClient) -> None:
    async def read(call: Call) -> None:
        await call.respond(b"ok")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * 100_000

    async with fake_engine(gateway.upstream, read):
        declared = await client.post(gateway.url + "/x", content=b"x" * 20_000_000)
        undeclared = await client.post(gateway.url + "/x", content=pieces())
        fits = await client.post(gateway.url + "/x", content=b"x" * 1_000_000)
    assert (declared.status_code, undeclared.status_code, fits.status_code) == (413, 413, 200)
    assert _openai_error(undeclared.content)["code"] == "request_too_large"
    assert gateway.stats()["refused"] == 2


async def test_an_engine_that_answers_before_it_has_read_everything_is_passed_on(
    gateway: Gateway, client: httpx.AsyncClient
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 422 No\r\ncontent-length: 2\r\n\r\nno")
        await writer.drain()
        await reader.read()

    server = await asyncio.start_unix_server(refuse, gateway.upstream)
    async with server:
        answer = await client.post(gateway.url + "/x", content=b"x" * 1_000_000)
    assert (answer.status_code, answer.content) == (422, b"no")
