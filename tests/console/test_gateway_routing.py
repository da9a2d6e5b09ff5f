"""Through the gateway's port: tags and hints reach the engine, lanes choose it, streams stay what they were.

The engines are stand-ins (`fake_engine`): these tests are about the proxy.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.console.fake_engine import Call, Handler, fake_engine
from tests.console.gateway_process import DEADLINE, Gateway, running_gateway
from tests.console.raw_client import raw_client

JSON = b"content-type: application/json"
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with running_gateway("--max-body", "1000000") as process:
        yield process


@pytest.fixture(scope="module")
def two() -> Iterator[Gateway]:
    """A gateway between two engines."""
    with running_gateway(vanilla=True) as process:
        yield process


def _keeps(seen: list[Call], answer: bytes = b"{}") -> Handler:
    async def keep(call: Call) -> None:
        seen.append(call)
        await call.respond(answer, headers=(JSON,))

    return keep


class Changes:
    """How much the counts have grown since this was made."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._before = gateway.stats()

    def of(self, *names: str) -> list[int]:
        now = self._gateway.stats()
        return [now[name] - self._before[name] for name in names]


async def test_header_tag_and_hint_stand_in_the_body_that_the_engine_gets(gateway: Gateway) -> None:
    seen: list[Call] = []
    changes = Changes(gateway)
    body = b'{ "messages": [{"role":"user","content":"\xc3\xb6"}],\n "temperature": 0.70, "disable_speculation": true }'
    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, _keeps(seen)):
        for chunks in (0, 7):
            async with raw_client(gateway.port) as client:
                await client.post(body, JSON, b"x-workload: code", chunks=chunks)
                assert (await client.read_head())[0] == 200
    for call in seen:
        assert call.body == (
            b'{"vllm_xargs": {"workload": "code", "disable_speculation": 1},  "messages": '
            b'[{"role":"user","content":"\xc3\xb6"}],\n "temperature": 0.70 }'
        )
    whole, chunked = seen
    assert whole.header(b"content-length") == str(len(whole.body)).encode()
    assert (chunked.header(b"content-length"), chunked.header(b"transfer-encoding")) == (None, b"chunked")
    assert changes.of("tags_put", "hints_seen", "hints_lost", "refused") == [2, 2, 0, 0]


@pytest.mark.parametrize("chunks", [0, 5])
async def test_a_request_that_needs_nothing_arrives_byte_for_byte(gateway: Gateway, chunks: int) -> None:
    seen: list[Call] = []
    body = b'{ "prompt" : "x" , "vllm_xargs":{"workload":"code", "disable_speculation":true},"n":1.0e0 }\n'
    async with (
        asyncio.timeout(DEADLINE),
        fake_engine(gateway.upstream, _keeps(seen)),
        raw_client(gateway.port) as client,
    ):
        await client.post(body, JSON, b"x-workload: code", chunks=chunks)
        assert (await client.read_head())[0] == 200
    assert seen[0].body == body


async def test_a_stream_for_a_rewritten_request_comes_chunk_for_chunk(gateway: Gateway) -> None:
    chunks = [b'data: {"a":1}\n\n', b"data: hal", b"f an event\n\n", b"\x00\xff", b"data: x\n\ndata: y\n\n"]
    arrived: asyncio.Queue[None] = asyncio.Queue()

    async def one_at_a_time(call: Call) -> None:
        assert json.loads(call.body)["vllm_xargs"] == {"workload": "code"}
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
        await client.post(b'{"stream": true}', JSON, b"x-workload: code")
        _, headers = await client.read_head()
        for chunk in chunks:
            assert await client.read_chunk() == chunk
            arrived.put_nowait(None)
        assert await client.read_chunk() == b""
    assert sorted(headers) == [b"content-type: text/event-stream", b"transfer-encoding: chunked"]


async def test_a_client_that_leaves_a_rewritten_request_is_seen_by_the_engine(gateway: Gateway) -> None:
    reached, left = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> None:
        reached.set()
        await call.client_left()
        left.set()

    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, wait):
        async with raw_client(gateway.port) as client:
            await client.post(b"{}", JSON, b"x-workload: code")
            await reached.wait()
        await left.wait()


async def test_a_client_that_leaves_before_its_body_is_complete_never_reaches_the_engine(gateway: Gateway) -> None:
    seen: list[Call] = []
    changes = Changes(gateway)
    async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, _keeps(seen)):
        async with raw_client(gateway.port) as client:
            await client.send(b"POST /v1/completions HTTP/1.1\r\nhost: me\r\n%b\r\ncontent-length: 99\r\n\r\n{" % JSON)
            await asyncio.sleep(0.05)
        while changes.of("cancelled") != [1]:
            await asyncio.sleep(0.01)
    assert (seen, gateway.stats()["active"]) == ([], 0)


async def test_a_body_that_grows_over_the_limit_while_it_is_read_is_413(gateway: Gateway) -> None:
    seen: list[Call] = []
    async with (
        asyncio.timeout(DEADLINE),
        fake_engine(gateway.upstream, _keeps(seen)),
        raw_client(gateway.port) as client,
    ):
        await client.post(b'{"prompt": "%b"}' % (b"x" * 1_000_000), JSON, chunks=50_000)
        status, headers = await client.read_head()
        error = json.loads(await client.read_body(headers))["error"]
    assert (status, error["code"], seen) == (413, "request_too_large", [])


async def test_a_malformed_hint_is_answered_at_once_and_never_reaches_the_engine(gateway: Gateway) -> None:
    seen: list[Call] = []
    changes = Changes(gateway)
    async with fake_engine(gateway.upstream, _keeps(seen)), httpx.AsyncClient(timeout=DEADLINE) as client:
        answer = await client.post(gateway.url + CHAT, json={"vllm_xargs": {"disable_speculation": "maybe"}})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], seen) == (400, "vllm_xargs.disable_speculation", [])
    assert "'maybe'" in error["message"]
    assert changes.of("refused", "hints_rejected", "errors") == [1, 1, 0]


@pytest.mark.parametrize(
    ("path", "content", "headers"),
    [
        (CHAT, b"\x1f\x8b", {"content-type": "application/json", "content-encoding": "gzip"}),
        (CHAT, b'{"a":1}', {"content-type": "text/plain"}),
        (CHAT, b'{"a":', {"content-type": "application/json"}),
        ("/v1/audio/transcriptions", b"--x\r\n\r\n--x--", {"content-type": "multipart/form-data; boundary=x"}),
    ],
)
async def test_a_body_that_can_hold_no_tag_passes_and_the_loss_is_counted(
    gateway: Gateway, path: str, content: bytes, headers: dict[str, str]
) -> None:
    seen: list[Call] = []
    changes = Changes(gateway)
    async with fake_engine(gateway.upstream, _keeps(seen)), httpx.AsyncClient(timeout=DEADLINE) as client:
        await client.post(gateway.url + path, content=content, headers=headers | {"x-workload": "code"})
        await client.post(gateway.url + path, content=content, headers=headers)
        await client.get(gateway.url + "/v1/models", headers={"x-workload": "code"})
    assert [call.body for call in seen] == [content, content, b""]
    assert changes.of("hints_lost", "tags_put") == [1, 0]


# -- two engines ----------------------------------------------------------------------------------------------------


async def _served(two: Gateway, *requests: tuple[dict[str, Any], dict[str, str]]) -> list[str]:
    """Who answers each request, by the answer; that of the vanilla engine has to be marked."""
    async with httpx.AsyncClient(timeout=DEADLINE) as client:
        answers = [await client.post(two.url + CHAT, json=body, headers=headers) for body, headers in requests]
    for answer in answers:
        assert (answer.headers.get("x-specdeck-lane") == "vanilla") == (answer.text == '"vanilla"')
    return [answer.json() if answer.status_code == 200 else answer.json()["error"]["code"] for answer in answers]


async def test_lanes_hints_and_parameters_choose_the_engine(two: Gateway) -> None:
    two.ask({"set": {"version": 4, "lanes": {"hostile": "vanilla"}}})
    changes = Changes(two)
    main, vanilla = _keeps([], b'"main"'), _keeps([], b'"vanilla"')
    async with fake_engine(two.upstream, main), fake_engine(two.vanilla, vanilla):
        answered = await _served(
            two,
            ({}, {}),
            ({}, {"x-workload": "hostile"}),
            ({"vllm_xargs": {"workload": "hostile"}}, {"x-workload": "friendly"}),
            ({"min_p": 0.1}, {"x-workload": "friendly"}),
            ({"logit_bias": {"7": -100}}, {}),
            ({"disable_speculation": True}, {}),
        )
        two.ask({"set": {"version": 5}})
        answered += await _served(two, ({}, {"x-workload": "hostile"}))
    assert answered == ["main", "vanilla", "main", "vanilla", "vanilla", "vanilla", "main"]
    names = ("vanilla_by_lane", "vanilla_by_hint", "vanilla_by_parameters", "vanilla_spilled")
    assert changes.of(*names) == [1, 1, 2, 0]


async def test_while_the_vanilla_engine_is_away_its_lane_is_served_and_what_only_it_can_do_is_503(two: Gateway) -> None:
    two.ask({"set": {"version": 6, "lanes": {"hostile": "vanilla"}}})
    changes = Changes(two)
    async with fake_engine(two.upstream, _keeps([], b'"main"')), httpx.AsyncClient(timeout=DEADLINE) as client:
        answered = await _served(two, ({}, {"x-workload": "hostile"}), ({}, {"x-disable-speculation": "1"}))
        refused = await client.post(two.url + CHAT, json={"min_p": 0.1})
        stats = two.stats()
    assert answered == ["main", "main"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "vanilla_engine_unavailable")
    assert int(refused.headers["retry-after"]) > 0
    assert changes.of("vanilla_spilled", "vanilla_by_lane", "vanilla_by_hint", "unavailable") == [2, 0, 0, 1]
    assert (stats["vanilla_engine"], stats["vanilla_ok"], stats["upstream_ok"]) == (True, False, True)


async def test_with_one_engine_the_vanilla_lane_stays_in_it_and_unsupported_parameters_are_400(
    gateway: Gateway,
) -> None:
    gateway.ask({"set": {"version": 2, "lanes": {"hostile": "vanilla"}}})
    seen: list[Call] = []
    changes = Changes(gateway)
    async with fake_engine(gateway.upstream, _keeps(seen)), httpx.AsyncClient(timeout=DEADLINE) as client:
        lane = await client.post(gateway.url + CHAT, json={}, headers={"x-workload": "hostile"})
        refused = await client.post(gateway.url + CHAT, json={"min_p": 0.1, "logit_bias": {"7": 1}})
    assert lane.status_code == 200
    assert "x-specdeck-lane" not in lane.headers
    assert json.loads(seen[0].body)["vllm_xargs"]["workload"] == "hostile"
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported_with_speculation")
    assert changes.of("unsupported", "refused", "vanilla_by_lane") == [1, 1, 0]


async def test_an_engine_that_does_not_draft_gets_those_parameters_itself() -> None:
    seen: list[Call] = []
    body = b'{"min_p":0.1}'
    with running_gateway("--no-speculation") as gateway:
        async with (
            asyncio.timeout(DEADLINE),
            fake_engine(gateway.upstream, _keeps(seen)),
            raw_client(gateway.port) as client,
        ):
            await client.post(body, JSON)
            assert (await client.read_head())[0] == 200
    assert seen[0].body == body
