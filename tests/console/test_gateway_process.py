"""The gateway as a process: its arguments, its key, its control socket, its end, and how little it loads."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.console.fake_engine import Call, chat_engine, fake_engine
from tests.console.gateway_process import DEADLINE, gateway_command, gateway_environment, running_gateway
from tests.console.raw_client import raw_client


def _refused(folder: Path, *arguments: str) -> tuple[int, str]:
    command = gateway_command(folder, *arguments)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE, env=gateway_environment(), check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:8000", "some.host:8000"])
def test_a_public_address_without_a_key_is_refused_and_says_how(tmp_path: Path, address: str) -> None:
    code, words = _refused(tmp_path, "--listen", address)
    assert code == 2
    assert "--api-key-file" in words


@pytest.mark.parametrize("address", ["8000", "127.0.0.1:", "127.0.0.1:99999", ":8000", "::1:8000", "127.0.0.1:x"])
def test_an_address_that_cannot_be_meant_is_bad_usage(tmp_path: Path, address: str) -> None:
    code, words = _refused(tmp_path, "--listen", address)
    assert code == 2
    assert "127.0.0.1:8000" in words or "[::1]:8000" in words


def test_a_taken_port_is_named_with_a_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, words = _refused(tmp_path, "--listen", f"127.0.0.1:{port}")
    assert code == 3
    assert f"port {port}" in words
    assert "--listen" in words
    assert not (tmp_path / "control").exists()


@pytest.mark.parametrize("content", [None, "", "two\nlines", "sp ace", "ключ"])
def test_a_key_file_that_holds_no_key_is_bad_usage(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    code, words = _refused(tmp_path, "--listen", "127.0.0.1:0", "--api-key-file", str(file))
    assert code == 2
    assert str(file) in words


async def test_with_a_key_only_its_bearer_gets_through_and_the_engine_never_sees_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    seen: list[Call] = []

    async def keep(call: Call) -> None:
        seen.append(call)
        await call.respond(b"ok")

    with running_gateway("--api-key-file", str(tmp_path / "key")) as gateway:
        async with fake_engine(gateway.upstream, keep), httpx.AsyncClient(base_url=gateway.url) as client:
            wrong = ["", "Bearer", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"]
            codes = [(await client.get("/v1/models", headers={"authorization": value})).status_code for value in wrong]
            missing = await client.get("/v1/models")
            right = await client.get("/v1/models", headers={"authorization": "bearer s3cret"})
            health = await client.get("/health")
        refused = gateway.stats()["refused"]
    assert codes == [401] * len(wrong)
    assert missing.json()["error"]["code"] == "invalid_api_key"
    assert (right.status_code, health.status_code, refused) == (200, 200, len(wrong) + 1)
    assert [call.header(b"authorization") for call in seen] == [None, None]


def test_the_control_socket_counts_and_keeps_the_table_it_was_sent() -> None:
    with running_gateway() as gateway:
        stats = gateway.stats()
        assert stats["pid"] == gateway.process.pid
        assert {"requests", "errors", "active", "upstream_ok"} <= set(stats)
        table = {"version": 3, "lanes": {"creative": "vanilla"}}
        assert gateway.ask({"set": table}) == {"version": 3}
        for wrong in (b"\xff", b"[]", b"{}", b'{"get":"x"}', b'{"set":{"version":"4"}}', b'{"set":{"version":true}}'):
            assert set(gateway.ask(wrong)) == {"error"}
        assert gateway.ask({"get": "table"}) == {"table": table}
        assert gateway.stats()["table_version"] == 3


async def test_requests_are_counted_while_active_and_after() -> None:
    with running_gateway() as gateway:
        go = asyncio.Event()

        async def wait(call: Call) -> None:
            await go.wait()
            await call.respond(b"ok")

        async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, wait), raw_client(gateway.port) as client:
            await client.post()
            while gateway.stats()["active"] != 1:
                await asyncio.sleep(0.01)
            go.set()
            await client.read_head()
            while gateway.stats()["active"] != 0:
                await asyncio.sleep(0.01)
        assert gateway.stats()["requests"] == 1


async def test_sigterm_takes_no_new_client_finishes_the_stream_and_exits_0() -> None:
    with running_gateway("--grace", str(DEADLINE)) as gateway:
        go = asyncio.Event()

        async def stream(call: Call) -> None:
            await call.start_events()
            await call.chunk(b"data: 1\n\n")
            await go.wait()
            await call.chunk(b"data: 2\n\n")
            await call.end_chunks()

        async with asyncio.timeout(DEADLINE), fake_engine(gateway.upstream, stream), raw_client(gateway.port) as client:
            await client.post()
            await client.read_head()
            first = await client.read_chunk()
            gateway.process.send_signal(signal.SIGTERM)
            await _until_refused(gateway.port)
            go.set()
            rest = await client.read_chunks()
            code = await asyncio.to_thread(gateway.process.wait, DEADLINE)
    assert (first, rest, code) == (b"data: 1\n\n", [b"data: 2\n\n"], 0)


async def test_sigterm_cuts_a_stream_that_outlasts_the_grace_period_and_exits_0() -> None:
    with running_gateway("--grace", "0.2") as gateway:

        async def endless(call: Call) -> None:
            await call.start_events()
            await call.chunk(b"data: 1\n\n")
            await call.client_left()

        async with (
            asyncio.timeout(DEADLINE),
            fake_engine(gateway.upstream, endless),
            raw_client(gateway.port) as client,
        ):
            await client.post()
            await client.read_head()
            await client.read_chunk()
            gateway.process.send_signal(signal.SIGTERM)
            last = b"".join(await client.read_chunks())
            code = await asyncio.to_thread(gateway.process.wait, DEADLINE)
    assert b"gateway_stopping" in last
    assert code == 0


async def test_ctrl_c_is_an_orderly_end_too_and_the_port_is_free_again() -> None:
    with running_gateway() as gateway:
        async with fake_engine(gateway.upstream, chat_engine()), httpx.AsyncClient() as client:
            assert (await client.get(gateway.url + "/v1/models")).status_code == 200
            gateway.process.send_signal(signal.SIGINT)
            assert await asyncio.to_thread(gateway.process.wait, DEADLINE) == 0
        with socket.create_server(("127.0.0.1", gateway.port)):
            pass


def test_it_loads_neither_store_nor_screen_nor_engine() -> None:
    script = (
        "import sys, console.gateway.command, console.gateway.server, console.gateway.proxy\n"
        "import uvicorn; uvicorn.Config(None, ws='none').load()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=gateway_environment()
    )
    loaded = set(done.stdout.split())
    assert "uvicorn" in loaded
    assert not loaded & {
        "duckdb",
        "numpy",
        "pyarrow",
        "textual",
        "vllm",
        "torch",
        "pydantic",
        "httpx",
        "scipy",
        "store",
    }


async def _until_refused(port: int) -> None:
    while True:
        try:
            async with raw_client(port):
                await asyncio.sleep(0.02)
        except ConnectionRefusedError:
            return
