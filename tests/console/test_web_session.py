"""A tab whose console breaks or hangs: the page says so, and the process is gone. And who is let in, asked of the
guard's own questions."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.web import session
from console.web.access import Access
from console.web.options import TokenError, read_token
from console.web.server import WebConsole
from tests.console.web_process import Tab, gone

PAINTS = "import os, sys; os.write(1, b'__GANGLION__\\n' + b'D' + (5).to_bytes(4, 'big') + b'hello'); "
BREAKS = f"{PAINTS} sys.stderr.write('it broke'); sys.exit(7)"
HANGS = f"{PAINTS} import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
FLOODS = f"{PAINTS}\nwhile True: os.write(1, b'D' + (60000).to_bytes(4, 'big') + b'x' * 60000)"


@asynccontextmanager
async def serving(script: str, hindrance: str | None = None) -> AsyncIterator[tuple[WebConsole, str]]:
    """A server in this process whose consoles run `script`, and its address."""
    server = WebConsole(
        [sys.executable, "-S", "-c", script], Access(None), sessions=2, title="t", hindrance=lambda: hindrance
    )
    end = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve_until(end, listener))
        try:
            yield server, f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            end.set()
            await task


@asynccontextmanager
async def tab(address: str) -> AsyncIterator[Tab]:
    headers = {"Origin": address}
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{address}/ws", headers=headers) as websocket:
        yield Tab(websocket)


def pids(server: WebConsole) -> list[int]:
    return [one.process.pid for one in server._sessions]


async def test_a_console_that_breaks_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(BREAKS) as (_, address), tab(address) as one:
        await one.shows("hello", "ended with code 7", "where `specdeck web` runs")
        await one.is_closed()
    said = capsys.readouterr()
    assert "it broke" in said.out + said.err


@pytest.mark.parametrize("script", [HANGS, FLOODS], ids=["hangs", "floods"])
async def test_a_console_that_does_not_end_is_ended(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "QUIT_SECONDS", 0.3)
    async with serving(script) as (server, address):
        async with tab(address) as one:
            await one.shows("hello")
            children = pids(server)
        await gone(children)
        async with tab(address) as other:
            await other.shows("hello")
            children = pids(server)
    await gone(children)


async def test_without_a_station_a_tab_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(HANGS, "No station is running here.") as (server, address), tab(address) as one:
        await one.shows("No station is running here.")
        await one.is_closed()
        assert not pids(server)


ACCESS = Access("t" * 20, frozenset({"gpu7"}))


@pytest.mark.parametrize("host", ["127.0.0.1:8010", "[::1]:8010", "localhost", "GPU7:8010", "gpu7.", "10.1.2.3"])
def test_its_own_names_and_addresses_are_known(host: str) -> None:
    assert ACCESS.knows_host(host)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "gpu7.evil.example", "gpu7@evil.example", "gpu7:x", "127.0.0.1.nip.io"]
)
def test_other_names_are_not(host: str) -> None:
    assert not ACCESS.knows_host(host)


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_but_the_token_and_the_proof_is_right(text: str) -> None:
    assert ACCESS.right_token(text) == (text == ACCESS.token)
    assert ACCESS.has_proof(text) == (text == ACCESS.proof)
    assert not ACCESS.same_origin(text, "127.0.0.1:8010")
    assert ACCESS.knows_host(text) in (True, False)


@pytest.mark.parametrize(
    ("text", "words"), [("short", "can be guessed"), ("two words are no token", "spaces"), ("", "can be guessed")]
)
def test_a_token_that_keeps_nobody_out_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    for given_there in ((file, None), (None, text)):
        with pytest.raises(TokenError, match=words):
            read_token(*given_there)
    file.write_text("0123456789abcdef\n")
    assert read_token(file, "x" * 20) == "0123456789abcdef"
    assert read_token(None, None) is None
