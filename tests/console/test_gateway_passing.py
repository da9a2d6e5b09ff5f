"""The gateway passes bytes: what the engine sends arrives as it was sent, when it was sent, and the same way up.

The engine is a stand-in (`fake_engine`): these tests are about the proxy.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.console.fake_engine import Call, fake_engine
from tests.console.gateway_process import DEADLINE, Gateway, running_gateway
from tests.console.raw_client import raw_client


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with running_gateway() as process:
        yield process


async def test_each_chunk_arrives_before_the_next_is_sent_and_is_the_same_chunk(gateway: Gateway) -> None:
    chunks = [
        b'data: {"a":1}\n\n',
        b"data: hal",
        b"f an event\n\n",
        b"\x00\xff",
        b"data: x\n\ndata: y\n\n",
        b"z" * 70_000,
    ]
    arrived: asyncio.Queue[None] = asyncio.Queue()

    async def one_at_a_time(call: Call) -> None:
        await call.start_events()
        for chunk in chunks:
            await call.chunk(chunk)
            await arrived.get()  # a proxy that holds anything back never gets past here
        await call.end_chunks()

    async with (
        asyncio.timeout(DEADLINE),
        fake_engine(gateway.upstream, one_at_a_time),
        raw_client(gateway.port) as client,
    ):
        await client.post()
        status, headers = await client.read_head()
        seen = b""
        for chunk in chunks:
            while len(seen) < len(chunk):
                seen += await client.read_chunk()
            assert seen == chunk
            seen = b""
            arrived.put_nowait(None)
        assert await client.read_chunk() == b""
    assert status == 200
    assert sorted(headers) == [b"content-type: text/event-stream", b"transfer-encoding: chunked"]


async def test_chunks_that_come_in_one_packet_stay_apart(gateway: Gateway) -> None:
    chunks = [b"data: %d\n\n" % number for number in range(50)]

    async def all_at_once(call: Call) -> None:
        await call.start_events()
        await call.send(b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n")

    async with (
        asyncio.timeout(DEADLINE),
        fake_engine(gateway.upstream, all_at_once),
        raw_client(gateway.port) as client,
    ):
        await client.post()
        await client.read_head()
        assert await client.read_chunks() == chunks


async def test_large_bodies_pass_unchanged_both_ways_with_their_length(gateway: Gateway) -> None:
    up, down = os.urandom(20_000_000), os.urandom(20_000_000)
    seen: list[Call] = []

    async def swap(call: Call) -> None:
        seen.append(call)
        await call.respond(down)

    async with fake_engine(gateway.upstream, swap), httpx.AsyncClient(timeout=DEADLINE) as client:
        answer = await client.post(gateway.url + "/big", content=up)
    assert answer.content == down
    assert answer.headers["content-length"] == str(len(down))
    assert seen[0].body == up
    assert seen[0].header(b"content-length") == str(len(up)).encode()
    assert seen[0].header(b"transfer-encoding") is None


async def test_a_request_without_a_declared_length_stays_without_one(gateway: Gateway) -> None:
    seen: list[Call] = []

    async def keep(call: Call) -> None:
        seen.append(call)
        await call.respond(b"ok")

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, keep), raw_client(gateway.port) as client:
        await client.send(
            b"POST /x HTTP/1.1\r\nhost: me\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        status, _ = await client.read_head()
    assert status == 200
    assert seen[0].body == b"abcde"
    assert seen[0].header(b"transfer-encoding") == b"chunked"
    assert seen[0].header(b"content-length") is None


async def test_a_client_that_asks_before_sending_its_body_is_told_to_go_on(gateway: Gateway) -> None:
    seen: list[Call] = []

    async def keep(call: Call) -> None:
        seen.append(call)
        await call.respond(b"ok")

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, keep), raw_client(gateway.port) as client:
        await client.send(b"POST /x HTTP/1.1\r\nhost: me\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
        assert await client.read_head() == (100, [])
        await client.send(b"abc")
        assert (await client.read_head())[0] == 200
    assert seen[0].body == b"abc"
    assert seen[0].header(b"expect") is None


async def test_a_head_answer_keeps_its_length_has_no_body_and_leaves_the_connection_usable(gateway: Gateway) -> None:
    async def head(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n")

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, head), raw_client(gateway.port) as client:
        for _ in range(2):
            await client.send(b"HEAD /v1/models HTTP/1.1\r\nhost: me\r\n\r\n")
            assert await client.read_head() == (200, [b"content-length: 1234"])


@pytest.mark.parametrize("status", [204, 304, 400, 404, 422, 500])
async def test_any_status_passes(gateway: Gateway, status: int) -> None:
    async def answer(call: Call) -> None:
        if status in (204, 304):
            await call.send(b"HTTP/1.1 %d Fine\r\nx-a: b\r\n\r\n" % status)
        else:
            await call.respond(b'{"error": "x"}', status=status, headers=(b"x-a: b",))

    async with fake_engine(gateway.upstream, answer), httpx.AsyncClient(timeout=DEADLINE) as client:
        got = await client.get(gateway.url + "/any")
    assert (got.status_code, got.headers["x-a"]) == (status, "b")
    assert got.content == (b"" if status in (204, 304) else b'{"error": "x"}')


async def test_headers_of_one_connection_stop_and_the_others_pass(gateway: Gateway) -> None:
    seen: list[Call] = []

    async def answer(call: Call) -> None:
        seen.append(call)
        own = (b"connection: close, x-private", b"x-private: 1", b"keep-alive: timeout=5", b"proxy-authenticate: a")
        await call.respond(
            b"ok", headers=(b"set-cookie: a=1", b"set-cookie: b=2", b"date: D", b"server: uvicorn", *own)
        )

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, answer), raw_client(gateway.port) as client:
        await client.send(
            b"GET / HTTP/1.1\r\nhost: me:1\r\nconnection: keep-alive, x-mine, host\r\nx-mine: 1\r\nte: trailers\r\n"
            b"upgrade: h2c\r\nauthorization: Bearer e\r\nx-workload: code\r\naccept-encoding: gzip\r\n\r\n"
        )
        _, answer_headers = await client.read_head()
    assert answer_headers == [
        b"content-length: 2",
        b"set-cookie: a=1",
        b"set-cookie: b=2",
        b"date: D",
        b"server: uvicorn",
    ]
    assert seen[0].headers == [
        (b"host", b"me:1"),
        (b"authorization", b"Bearer e"),
        (b"x-workload", b"code"),
        (b"accept-encoding", b"gzip"),
        (b"connection", b"close"),
    ]


TOKEN = st.text("abcdefghijklmnopqrstuvwxyz0123456789_!#$%&'*+.^|~", min_size=1, max_size=20)
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=60)
HEADERS = st.lists(st.tuples(TOKEN.map(lambda name: "x-" + name), VALUE), max_size=8)
TARGET = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="?#"), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    path=TARGET,
    query=st.none() | TARGET,
    headers=HEADERS,
    body=st.binary(max_size=4000),
    answer_headers=HEADERS,
    pieces=st.lists(st.binary(min_size=1, max_size=3000), max_size=6),
    status=st.sampled_from([200, 201, 400, 404, 503]),
)
async def test_random_requests_and_answers_pass_unchanged(
    gateway: Gateway,
    method: str,
    path: str,
    query: str | None,
    headers: list[tuple[str, str]],
    body: bytes,
    answer_headers: list[tuple[str, str]],
    pieces: list[bytes],
    status: int,
) -> None:
    target = f"/{path}".encode() + (b"?" + query.encode() if query else b"")
    seen: list[Call] = []

    async def answer(call: Call) -> None:
        seen.append(call)
        lines = [b"HTTP/1.1 %d Fine" % status, b"transfer-encoding: chunked", *_lines(answer_headers)]
        await call.send(b"\r\n".join(lines) + b"\r\n\r\n")
        for piece in pieces:
            await call.chunk(piece)
        await call.end_chunks()

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, answer), raw_client(gateway.port) as client:
        lines = [b"%b %b HTTP/1.1" % (method.encode(), target), b"host: me", b"content-length: %d" % len(body)]
        await client.send(b"\r\n".join([*lines, *_lines(headers)]) + b"\r\n\r\n" + body)
        got_status, got_headers = await client.read_head()
        got_body = b"".join(await client.read_chunks())
    assert got_status == status
    assert got_body == b"".join(pieces)
    assert [line for line in got_headers if line.startswith(b"x-")] == _lines(answer_headers)
    call = seen[0]
    assert (call.method, call.target, call.body) == (method, target, body)
    assert [b"%b: %b" % pair for pair in call.headers if pair[0].startswith(b"x-")] == _lines(headers)


def _lines(headers: list[tuple[str, str]]) -> list[bytes]:
    return [f"{name}: {value}".encode() for name, value in headers]
