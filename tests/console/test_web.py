"""`specdeck web` over a scripted engine: who may look, who may change what, and that nothing outlives its tab."""

from __future__ import annotations

import base64
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import httpx
import psutil
import pytest
from click.testing import CliRunner

from console.cli.root import root
from tests.console.pseudo_terminal import Terminal
from tests.console.station_harness import StationUnderTest
from tests.console.web_process import SCRIPT, WebProcess, gone, tab


@pytest.fixture(scope="module")
def station() -> Iterator[StationUnderTest]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name, pytest.MonkeyPatch.context() as patch:
        for variable, folder in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            patch.setenv(f"SPECDECK_{variable}_DIR", str(Path(name) / folder))
        running = StationUnderTest(Path(name)).start()
        running.wait_serving()
        yield running
        running.close()


@pytest.fixture(scope="module")
def web(station: StationUnderTest) -> Iterator[WebProcess]:
    served = WebProcess("--port", "0", "--sessions", "2")
    yield served
    served.end()


@pytest.fixture(scope="module")
def cookie(web: WebProcess) -> str:
    return web.cookie()


def test_the_address_gives_a_cookie_that_only_this_page_gets_and_no_script_reads(web: WebProcess) -> None:
    admitted = web.get(f"/?token={web.token}")
    assert admitted.status_code == 200
    set_cookie = admitted.headers["set-cookie"]
    assert "HttpOnly" in set_cookie
    assert "SameSite=Strict" in set_cookie
    assert web.token not in set_cookie
    assert web.token not in admitted.text
    page = web.get("/", cookie=set_cookie.split(";")[0])
    assert page.status_code == 200
    assert "textual-terminal" in page.text
    for response in (admitted, page):
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


def test_the_page_fetches_nothing_from_elsewhere(web: WebProcess, cookie: str) -> None:
    page = web.get("/", cookie=cookie).text
    assert "//" not in page
    fetched = re.findall(r'(?:href|src)="(/[^"]+)"|url\("([^"]+)"\)', page)
    assert len(fetched) == 6
    for paths in fetched:
        assert web.get("".join(paths), cookie=cookie).status_code == 200


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/?token=", "/static/js/textual.js", "/download/x", "/nowhere"])
def test_without_the_token_every_path_is_refused_and_says_what_to_do(web: WebProcess, path: str) -> None:
    for stale in ("", f"specdeck_web_{web.port}=old"):
        refused = web.get(path, cookie=stale)
        assert refused.status_code == 403
        assert "The terminal where" in refused.text
        assert "set-cookie" not in refused.headers
        assert refused.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": ""},
        {"Cookie": "specdeck_web=old"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"},
    ],
    ids=lambda headers: "-".join(f"{name}={value}" for name, value in headers.items()),
)
async def test_no_other_page_opens_a_console(web: WebProcess, cookie: str, headers: dict[str, str]) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with tab(web, **({"Cookie": cookie} | headers)):
            pass
    assert refused.value.status == 403
    assert not web.consoles()


def test_a_name_that_was_pointed_here_is_refused(web: WebProcess, cookie: str) -> None:
    assert web.get("/", cookie=cookie, host=f"evil.example:{web.port}").status_code == 403
    assert web.get("/", cookie=cookie, host=f"localhost:{web.port}").status_code == 200
    assert web.get("/", cookie=cookie, host="[::1]:9").status_code == 200  # through a tunnel


async def test_a_tab_is_the_console_and_only_looks_and_its_process_ends_with_it(web: WebProcess, cookie: str) -> None:
    async with tab(web, cookie) as one:
        await one.shows("chat", "code", "tok/s")
        pids = web.consoles()
        assert len(pids) == 1
        assert web.token not in " ".join(psutil.Process(pids[0]).environ().values())
        await one.press("f")
        await one.shows("this console is read-only")
        await one.press("w")
        await one.shows("only from a console")
        async with tab(web, cookie) as two, tab(web, cookie) as three:
            await three.shows("(2) are open here", "--sessions 3")
            await three.is_closed()
            assert three.socket.close_code == aiohttp.WSCloseCode.TRY_AGAIN_LATER
            await two.socket.send_json(["resize", {"width": "wide"}])
            await two.is_closed()
            assert two.socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION
        await one.press("3")
        await one.shows("history · newest first")
    await gone(pids)


async def test_left_by_its_key_a_console_ends_and_says_so(web: WebProcess, cookie: str) -> None:
    async with tab(web, cookie) as one:
        await one.shows("chat")
        await one.press("q")
        await one.shows("detach")
        await one.press("d")
        await one.shows("The console was left.")
        await one.is_closed()
    await gone(web.consoles())


@pytest.mark.parametrize("what", [signal.SIGTERM, signal.SIGKILL], ids=["sigterm", "sigkill"])
async def test_a_tab_that_may_write_does_and_however_the_server_ends_no_console_is_left(
    station: StationUnderTest, what: signal.Signals
) -> None:
    cap = 3 if what is signal.SIGTERM else 2
    web = WebProcess("--port", "0", "--write")
    async with tab(web, web.cookie()) as one:
        await one.shows("chat")
        await one.press("-")
        station.wait(lambda seen: seen.cap == cap, "the cap of the tab")
        pids = web.consoles()
        assert len(pids) == 1
        code = web.end(what)
        await one.is_closed()
    await gone(pids)
    assert code == (-signal.SIGKILL if what is signal.SIGKILL else 0)
    assert web.token not in web.said


@pytest.mark.parametrize("what", [signal.SIGTERM, signal.SIGKILL], ids=["sigterm", "sigkill"])
async def test_served_from_a_console_it_ends_with_that(station: StationUnderTest, what: signal.Signals) -> None:
    terminal = Terminal([str(SCRIPT), "attach"])
    try:
        terminal.read_until(b"tok/s")
        terminal.type("w")
        terminal.read_until(b"--write")
        terminal.type("\r")
        terminal.read_until(b"sees what this console sees")
        terminal.type("y")
        terminal.read_until(b"handed to")
        (server,) = (one for one in psutil.Process(terminal.process.pid).children() if "web" in one.cmdline())
        (copied,) = re.findall(rb"\x1b]52;c;([\w+/=]+)", terminal.output)
        assert httpx.get(base64.b64decode(copied).decode()).status_code == 200
        terminal.process.send_signal(what)
        terminal.process.wait(30)
        await gone([server.pid])
    finally:
        terminal.end()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--no-token", "--host", "0.0.0.0"), 2, "a token is always asked for"),
        (("--no-token", "--write"), 2, "a token is always asked for"),
        (("--token-file", "/nowhere"), 2, "/nowhere"),
        (("--replay", __file__, "--write"), 2, "changes nothing"),
        ((), 3, "no station is running"),
    ],
)
def test_what_cannot_be_served_is_refused(place: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = CliRunner().invoke(root, ["web", *arguments])
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr


def test_a_port_that_is_taken_is_told_with_who_has_it(station: StationUnderTest) -> None:
    done = CliRunner().invoke(root, ["web", "--port", str(station.options.port)])
    assert done.exit_code == 2
    assert "is taken by" in done.stderr
