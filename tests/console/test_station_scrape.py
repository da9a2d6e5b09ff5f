"""`specdeck serve --scrape`: a vLLM that specdeck does not run, observed by its counters; what they can't tell is said.

The server here stands in for a vLLM whose numbers must be known: it answers what a test prepared.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import duckdb
import httpx
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from console.cli.leftovers import end_all
from console.cli.outcomes import BadInput
from console.cli.root import root
from console.cli.station import ask
from console.feed.messages import Snapshot
from console.feed.protocol import PolicyResult, PolicySet, ProcessesResult
from console.station import scrape_look, scraper
from console.station.recorder import Note, open_recorder
from console.station.scrape_address import SCRAPE_SECONDS, BadSetting, read_address, scrape_seconds
from console.station.scrape_look import MAX_ENGINES, asking
from console.station.scraper import LIMITS_OF_VIEW, NOTES_LIMIT, Scraper
from console.station.snapshot import observed_figured, observed_view
from engine.records import PolicyMode
from store.database import Store
from store.figures import Report
from store.imports.observations import Observation
from store.report import report
from tests.console.station_harness import engine, free_port, until
from tests.store.imports_data.builders import counters, exposition

SECRET = "s3cret"

Reply = Callable[[http.server.BaseHTTPRequestHandler], None]


class Vllm:
    """A local server that answers GET with `reply`. Stands in for a vLLM whose numbers must be known."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        """Path and Authorization of each question."""
        self.reply: Reply = text("")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # whoever asked has hung up
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def show(self, *engines: str) -> None:
        """From now on answer with these counters."""
        self.reply = text(exposition(*engines))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        vllm = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                vllm.asked.append((self.path, self.headers.get("Authorization")))
                vllm.reply(self)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler


def text(body: str | bytes, status: int = 200, **headers: str) -> Reply:
    data = body.encode() if isinstance(body, str) else body

    def reply(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return reply


def hang_up(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def say_nothing(handler: http.server.BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)


def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
    """A byte now and then: no pause between two of them is ever long."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b"#")
        time.sleep(0.05)


def flood(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100_000):
        handler.wfile.write(b"# nothing of interest\n" * 100)


class Watch:
    """A scraper by itself, with what it gave to store and to tell."""

    def __init__(self, address: str, every: float = SCRAPE_SECONDS) -> None:
        self.put: list[Observation | Note] = []
        self.told: list[str] = []
        told = self.told
        self.address = read_address(address)
        self.scraper = Scraper(self.address, self.put.append, lambda kind, line: told.append(line), every)

    async def look(self, times: int = 1) -> None:
        async with asking(self.address) as client:
            for _ in range(times):
                await self.scraper.look(client)

    @property
    def observations(self) -> list[Observation]:
        return [item for item in self.put if isinstance(item, Observation)]

    @property
    def notes(self) -> list[str]:
        return [item.text for item in self.put if isinstance(item, Note)]

    @property
    def failing(self) -> str:
        assert self.scraper.failing is not None, self.told
        return self.scraper.failing.reason

    def alerts(self, later: float = 0.0) -> list[tuple[str, str]]:
        """Severity and text of what is wrong, `later` seconds from now."""
        return [(found.severity, found.text) for found in self.scraper.conditions(time.time() + later)]


@pytest.fixture
def vllm() -> Iterator[Vllm]:
    server = Vllm()
    yield server
    server.close()


@pytest.fixture
def watch(vllm: Vllm) -> Watch:
    return Watch(vllm.url)


def closed_port() -> str:
    return f"http://127.0.0.1:{free_port()}/metrics"


# What is counted


async def test_two_looks_give_what_was_counted_between_them(vllm: Vllm, watch: Watch) -> None:
    vllm.show(counters("0", 100, 300, 150, positions=(90, 60), generation_tokens_total=900, num_requests_running=3))
    await watch.look()
    assert watch.observations == [], "totals since the engine began say nothing of now"
    vllm.show(counters("0", 120, 360, 180, positions=(108, 72), generation_tokens_total=960, num_requests_running=2))
    await watch.look()
    (seen,) = watch.observations
    assert (seen.engine, seen.drafts, seen.draft_tokens, seen.accepted_tokens) == ("e0", 20, 60, 30)
    assert (seen.accepted_per_position, seen.generation_tokens, seen.source) == ([18, 12], 60, vllm.url)
    assert watch.scraper.engines["e0"].sample.running == 2


async def test_engines_that_restarted_are_pooled_right_and_told(vllm: Vllm, watch: Watch) -> None:
    vllm.show(counters("0", 100, 300, 150), counters("1", 10, 30, 30))
    await watch.look()
    vllm.show(counters("0", 120, 360, 180), counters("1", 5, 15, 3))
    await watch.look()
    now = time.time()
    found = observed_figured(watch.scraper, now)
    assert found.total is not None
    assert found.total.pooled_acceptance == pytest.approx(0.44)
    assert found.total.mean_acceptance_length == pytest.approx(2.32)
    assert found.total.waste_ratio == pytest.approx(0.56)
    (note,) = watch.notes
    assert note.startswith("e1 restarted between")
    assert note in watch.told
    views = {name: observed_view(watch.scraper, seen, now) for name, seen in watch.scraper.engines.items()}
    assert {name: view.restarts for name, view in views.items()} == {"e0": 0, "e1": 1}


async def test_a_view_says_what_cannot_be_known_and_leaves_it_out(vllm: Vllm, watch: Watch) -> None:
    vllm.show(counters("0", 1, 4, 2, num_requests_running=5, num_requests_waiting=2))
    await watch.look()
    view = observed_view(watch.scraper, watch.scraper.engines["e0"], time.time())
    assert view.detail == f"{LIMITS_OF_VIEW} (model m)"
    assert (view.owned, view.state, view.running, view.waiting) == (False, "serving", 5, 2)
    unknown = (view.executed_k, view.configured, view.resolved, view.policy_applied, view.policy_sent, view.pid)
    assert set(unknown) == {None}
    assert (view.max_k, view.max_num_seqs, view.batch_k, view.async_scheduling, view.data_parallel_size) == (None,) * 5
    assert watch.told == [f"e0 at {vllm.url} is {LIMITS_OF_VIEW}"]


async def test_live_figures_are_those_of_the_report_of_what_was_stored(
    vllm: Vllm, watch: Watch, tmp_path: Path
) -> None:
    for place, (drafts, accepted) in enumerate([(0, 0), (10, 13), (45, 60), (45, 60), (80, 131)]):
        positions = (accepted // 2, accepted // 3)
        vllm.show(
            counters("0", drafts, 4 * drafts, accepted, positions=positions, generation_tokens_total=accepted + drafts),
            counters("1", 2 * drafts, 6 * drafts, accepted, generation_tokens_total=90 * place),
        )
        await watch.look()
    recorder = open_recorder(tmp_path / "store.duckdb", lambda kind, line: None)
    recorder.start()
    for item in watch.put:
        recorder.put(item)
    recorder.stop()
    live = observed_figured(watch.scraper, time.time())
    with Store.open(tmp_path / "store.duckdb", read_only=True) as store:
        stored = report(store.connection, source="s")
    assert live.total == stored.total
    assert [bucket.figures for bucket in live.buckets] == stored.buckets
    assert stored.total is not None
    assert (stored.total.alpha, stored.total.decode_rows, stored.total.sequences) == (None, None, None)
    assert stored.total.steps == 240


async def test_figures_are_of_the_last_five_minutes(vllm: Vllm, watch: Watch) -> None:
    vllm.show(counters("0", 0, 0, 0, generation_tokens_total=0))
    await watch.look()
    vllm.show(counters("0", 10, 40, 20, generation_tokens_total=30))
    await watch.look()
    now = time.time()
    shown = observed_figured(watch.scraper, now + 290)
    (bucket,) = shown.buckets
    assert (bucket.window_label, bucket.figures.drafted, bucket.key.workload) == ("5 min", 40, None)
    assert shown.tokens_per_second is None, "what it made a while ago is no rate of now"
    (seen,) = watch.observations
    assert observed_figured(watch.scraper, now).tokens_per_second == pytest.approx(30 / (seen.ts - seen.since))
    later = observed_figured(watch.scraper, now + 301)
    assert (later.buckets, later.total, later.tokens_per_second) == ([], None, None)


async def test_a_server_without_speculation_is_no_error_and_has_no_acceptance(vllm: Vllm, watch: Watch) -> None:
    for tokens in (10, 90):
        vllm.reply = text(f'vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}\n')
        await watch.look()
    assert watch.notes == ["e0 shows no draft counters: it runs without speculation"]
    total = observed_figured(watch.scraper, time.time()).total
    assert total is not None
    assert (total.emitted, total.pooled_acceptance, total.mean_acceptance_length, total.state) == (
        80, None, None, "blind",
    )  # fmt: skip


# What fails


REFUSALS: list[tuple[Reply, Sequence[str]]] = [
    (text("nothing here", 404), ("answers 404 Not Found", "under which vLLM serves its /metrics")),
    (text("who are you", 401), ("answers 401", "user and password")),
    (text("", 307, Location="http://elsewhere/?token=s3cret"), ("answers 307", "redirects")),
    (text("warming up", 503), ("answers 503 Service Unavailable",)),
    (text("<html><body>It works!</body></html>"), (":1: not Prometheus text",)),
    (text('go_goroutines{x="1"} 8\n'), ("no series of vLLM in it",)),
    (text(exposition(counters("0", 1, 2, 1)) + "vllm:generation_tokens_total nan\n"), ("which is no count",)),
    (text(exposition(counters("0", 1, 2, 1)).encode() + b"\xff\xfe"), ("not UTF-8",)),
    (text(""), ("no series of vLLM in it",)),
    (hang_up, ("can't be read", "disconnected")),
    (flood, ("larger than 100,000 bytes",)),
    (text(b"no gzip", 200, **{"Content-Encoding": "gzip"}), ("can't be read",)),
    (
        text(exposition(*(counters(str(number), 1, 2, 1) for number in range(MAX_ENGINES + 1)))),
        (f"{MAX_ENGINES + 1} engines",),
    ),
    (text(exposition(counters("e" * 600, 1, 2, 1))), ("600 characters",)),
]


@pytest.mark.parametrize(("reply", "words"), REFUSALS)
async def test_an_answer_that_is_none_is_told_once_with_place_and_reason_and_asked_for_again(
    vllm: Vllm, reply: Reply, words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_look, "MAX_BYTES", 100_000)
    watch = Watch(vllm.url.replace("http://", f"http://ann:{SECRET}@"))
    vllm.reply = reply
    await watch.look(2)
    (told,) = watch.told
    for word in (vllm.url, "tried again every 10 s", *words):
        assert word in told
    assert watch.put == []
    assert watch.alerts() == [("critical", watch.failing)], "nothing was ever seen of it"
    assert watch.failing in told
    assert len(told) < 400
    assert SECRET not in f"{watch.told}{watch.failing}"

    vllm.show(counters("0", 1, 2, 1))
    await watch.look()
    assert watch.told[1].startswith(f"{vllm.url} answers again, after ")
    assert watch.alerts() == []


@pytest.mark.parametrize("reply", [say_nothing, drip])
async def test_an_answer_that_is_not_whole_in_time_is_given_up(
    vllm: Vllm, watch: Watch, reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_look, "TIMEOUT_SECONDS", 0.3)
    vllm.reply = reply
    await watch.look()
    assert watch.failing == f"{vllm.url}: no whole answer within 0.3 s"


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed"), "verify failed: self-signed"),
        (
            ExceptionGroup("all", [OSError(errno.ENETUNREACH, "x"), OSError(errno.EHOSTUNREACH, "y")]),
            "No route to host",
        ),
        (RuntimeError("of no system"), "All connection attempts failed"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_told_in_the_words_of_the_system(cause: Exception, words: str) -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        try:
            raise OSError("All connection attempts failed") from cause
        except OSError as error:
            raise httpx.ConnectError("All connection attempts failed") from error

    watch = Watch("http://h")
    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as client:
        await watch.scraper.look(client)
    assert watch.failing.startswith("http://h/metrics: can't be read: ")
    assert words in watch.failing


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_port_where_nobody_listens_is_told_as_that(host: str) -> None:
    watch = Watch(f"http://{host}:{free_port()}")
    await watch.look()
    assert "Connection refused" in watch.failing


async def test_an_outage_loses_no_counts_and_is_a_warning_until_the_engine_is_missed(vllm: Vllm, watch: Watch) -> None:
    vllm.show(counters("0", 100, 400, 200))
    await watch.look()
    began = watch.scraper.engines["e0"].sample.ts
    vllm.reply = text("", 503)
    await watch.look(3)
    assert len(watch.told) == 2, "met, then failing: said once, however often it is tried"
    assert watch.alerts() == [("warn", watch.failing)]
    assert watch.alerts(later=60) == [("critical", watch.failing)]
    seen = watch.scraper.engines["e0"]
    at_once, later = (observed_view(watch.scraper, seen, time.time() + seconds) for seconds in (0, 60))
    assert (at_once.state, at_once.detail) == ("serving", watch.failing)
    assert (later.state, later.detail, later.running) == ("lost", watch.failing, None)
    vllm.show(counters("0", 150, 600, 350))
    await watch.look()
    (bridged,) = watch.observations
    assert (bridged.since, bridged.drafts, bridged.accepted_tokens) == (began, 50, 150)


async def test_an_engine_that_the_answers_no_longer_show_is_missed_and_at_last_forgotten(
    vllm: Vllm, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    vllm.show(counters("0", 1, 4, 2), counters("1", 1, 4, 2))
    await watch.look()
    started = time.time()
    monkeypatch.setattr(scrape_look.time, "time", lambda: started + 60)
    vllm.show(counters("0", 2, 8, 4))
    await watch.look()
    ((severity, line),) = watch.alerts()
    assert (severity, line) == ("critical", f"engine e1: no longer in what {vllm.url} answers")
    monkeypatch.setattr(scrape_look.time, "time", lambda: started + 700)
    await watch.look()
    assert list(watch.scraper.engines) == ["e0"]
    assert watch.alerts() == []
    assert watch.told[-1].endswith("forgotten")


async def test_a_server_that_restarts_without_end_does_not_fill_the_store_with_notes(
    vllm: Vllm, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scraper, "NOTES_LIMIT", 3)
    for drafts in (9, 8, 7, 6, 5, 4, 3):
        vllm.show(counters("0", drafts, drafts, drafts))
        await watch.look()
    assert len(watch.notes) == 4
    assert watch.notes[-1].endswith("in the station's log only")
    assert len(watch.told) == 7, "the log hears of each"
    assert NOTES_LIMIT >= 100


GARBAGE = [
    b"vllm:spec_decode_num_drafts_total{",
    b'vllm:num_requests_running{engine="0"} +Inf\n',
    b"\x1f\x8b",
    b"# TYPE a b c",
]


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | st.sampled_from(GARBAGE))
@settings(max_examples=25, deadline=None)
def test_whatever_comes_back_a_look_ends_in_a_sample_or_in_a_reason(body: bytes) -> None:
    watch = Watch("http://stand-in/metrics")

    async def look() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
        async with httpx.AsyncClient(transport=transport) as client:
            await watch.scraper.look(client)

    asyncio.run(look())
    assert watch.scraper.failing is not None or watch.scraper.engines


async def test_looks_come_by_the_clock_and_end_when_they_are_told_to(vllm: Vllm) -> None:
    watch = Watch(vllm.url, every=0.05)
    vllm.show(counters("0", 1, 4, 2))
    looking = asyncio.create_task(watch.scraper.run())
    for _ in range(200):
        await asyncio.sleep(0.02)
        if len(vllm.asked) >= 3:
            break
    assert len(vllm.asked) >= 3
    looking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await looking
    asked = len(vllm.asked)
    await asyncio.sleep(0.15)
    assert len(vllm.asked) == asked


async def test_an_answer_that_takes_long_to_read_does_not_hold_up_the_loop(
    vllm: Vllm, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = scrape_look.parse_exposition

    def slowly(*arguments: Any) -> Any:
        time.sleep(0.3)
        return read(*arguments)

    monkeypatch.setattr(scrape_look, "parse_exposition", slowly)
    vllm.show(counters("0", 1, 4, 2))
    looking = asyncio.create_task(watch.look())
    turns = 0
    while not looking.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 5
    assert watch.scraper.engines


# The address


@pytest.mark.parametrize(
    ("given", "asked", "shown"),
    [
        ("http://h:8000", "http://h:8000/metrics", "http://h:8000/metrics"),
        ("http://h:8000/", "http://h:8000/metrics", "http://h:8000/metrics"),
        ("https://h/vllm/metrics", "https://h/vllm/metrics", "https://h/vllm/metrics"),
        ("http://[::1]:8000", "http://[::1]:8000/metrics", "http://[::1]:8000/metrics"),
        ("http://h:8000?token=s3cret", "http://h:8000/metrics?token=s3cret", "http://h:8000/metrics"),
        ("http://ann:s3cret@h/m#s3cret", "http://h/m", "http://h/m"),
        (" HTTP://h \n", "http://h/metrics", "http://h/metrics"),
    ],
)
def test_an_address_has_a_path_and_is_shown_without_its_secrets(given: str, asked: str, shown: str) -> None:
    address = read_address(given)
    assert (str(address.url), address.shown) == (asked, shown)
    assert SECRET not in address.shown


async def test_user_and_password_are_sent_and_neither_told_nor_stored(vllm: Vllm) -> None:
    watch = Watch(f"http://ann%40x:{SECRET}%2F@127.0.0.1:{vllm.port}/metrics?key={SECRET}")
    for drafts in (3, 2):
        vllm.show(counters("0", drafts, 8, 4))
        await watch.look()
    vllm.reply = text("", 403)
    await watch.look()
    expected = "Basic " + base64.b64encode(f"ann@x:{SECRET}/".encode()).decode()
    assert vllm.asked == [(f"/metrics?key={SECRET}", expected)] * 3
    assert SECRET not in f"{watch.told}{watch.put}{watch.alerts()}{watch.scraper.engines}"


BAD_ADDRESSES = [
    ("", "http"),
    ("h:8000", "http:// or https://"),
    ("ftp://h/metrics", "http:// or https://"),
    ("http://", "no host"),
    ("http:///metrics", "no host"),
    ("http://h:99999", "port"),
    ("http://h:0", "port"),
    ("http://h:port", "can't be read"),
    (f"http://ann:{SECRET}/x@h", "%2F"),
    ("http://[::1", "can't be read"),
    ("http://h\x00", "can't be read"),
]


@pytest.mark.parametrize(("address", "words"), BAD_ADDRESSES)
def test_an_address_that_cannot_be_asked_is_refused_without_being_repeated(address: str, words: str) -> None:
    with pytest.raises(BadSetting, match=words) as refused:
        read_address(address)
    assert "http://127.0.0.1:8000/metrics" in str(refused.value), "an example is the remedy"
    assert SECRET not in str(refused.value)


@given(st.text(max_size=40) | st.from_regex(r"https?://[^/]{0,20}(:[0-9x]{0,6})?(/.{0,9})?", fullmatch=True))
def test_any_text_is_an_address_or_refused(given: str) -> None:
    with contextlib.suppress(BadSetting):
        address = read_address(given)
        assert address.url.scheme in ("http", "https")
        assert "@" not in address.shown.partition("://")[2].partition("/")[0]


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "1e9"])
def test_looks_are_neither_incessant_nor_rare(seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDECK_SCRAPE_SECONDS", seconds)
    with pytest.raises(BadSetting, match="SPECDECK_SCRAPE_SECONDS"):
        scrape_seconds()


# The command line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scrape", "localhost:8000"), "http://127.0.0.1:8000/metrics"),
        (("--scrape", "ftp://h"), "http:// or https://"),
        (("--scrape", "http://h", "--model", "m"), "leave out --model"),
        (("--scrape", "http://h", "--max-k", "4", "--engine-arg=--dtype=float32"), "leave out --max-k, --engine-arg"),
        (("--scrape", "http://h", "--port", "8000"), "leave out --port"),
        (("--scrape", "http://h", "--store", "/nowhere/at/all.duckdb"), "no folder"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_to_leave_out(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(root, ["serve", *arguments], prog_name="specdeck")
    assert result.exit_code == 2, result.output
    assert words in result.output


def test_only_serve_observes() -> None:
    for command in ([], ["demo"]):
        result = CliRunner().invoke(root, [*command, "--scrape", "http://h"], prog_name="specdeck")
        assert result.exit_code == 2
        assert "No such option" in result.output


# A station


class Observer:
    """`specdeck serve --scrape` as a process, in a private place."""

    def __init__(self, directory: Path, address: str) -> None:
        self.store = directory / "store.duckdb"
        self.state_file = directory / "run" / "station.json"
        self.output = directory / "output"
        self.metrics_port = free_port()
        self._command = [
            sys.executable, "-m", "console.cli", "serve", "--scrape", address, "--store", str(self.store),
            "--metrics-port", str(self.metrics_port),
        ]  # fmt: skip
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self._command, env={**os.environ, "SPECDECK_SCRAPE_SECONDS": "0.2"}, stdout=output, stderr=output
            )

    def wait(self, condition: Callable[[Snapshot], bool], what: str) -> Snapshot:
        def look() -> Snapshot | None:
            with contextlib.suppress(click.ClickException):
                snapshot = ask("snapshot", Snapshot, seconds=5.0)
                return snapshot if condition(snapshot) else None
            assert self.process.poll() is None, self.output.read_text()
            return None

        return until(look, what)

    def figures(self) -> dict[str, float]:
        """The station's own /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            served = answer.read().decode()
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(served)
            for sample in family.samples
        }  # fmt: skip


@pytest.fixture
def observe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Observer]]:
    """Whatever is left at the end is ended."""
    started: list[Observer] = []
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        directory = Path(name)
        for variable, folder in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            monkeypatch.setenv(f"SPECDECK_{variable}_DIR", str(directory / folder))

        def start(address: str) -> Observer:
            started.append(Observer(directory, address))
            return started[-1]

        yield start
        for observer in started:
            if observer.process.poll() is None:
                observer.process.kill()
                observer.process.wait()
        end_all()


def test_an_observing_station_shows_and_stores_pooled_figures_and_no_secret(
    vllm: Vllm, observe: Callable[[str], Observer]
) -> None:
    """Each look finds 10 more draft steps of 4 tokens, 18 of them accepted, and 28 tokens committed."""

    def serve_more(handler: http.server.BaseHTTPRequestHandler) -> None:
        n = len(vllm.asked)
        made = counters(
            "0", 10 * n, 40 * n, 18 * n, positions=(9 * n, 6 * n, 3 * n, 0),
            generation_tokens_total=28 * n, num_requests_running=3,
        )  # fmt: skip
        text(exposition(made))(handler)

    vllm.reply = serve_more
    observer = observe(f"http://ann:{SECRET}@127.0.0.1:{vllm.port}")
    seen = observer.wait(lambda now: now.total is not None and now.total.steps >= 30, "figures")
    view = engine(seen)
    assert (view.owned, view.state, view.executed_k, view.running) == (False, "serving", None, 3)
    assert LIMITS_OF_VIEW in view.detail
    assert seen.gateway is None
    assert (seen.policy, seen.policy_version, seen.running, seen.waiting) == (None, None, 3, None)
    assert [process.role for process in ask("processes", ProcessesResult).processes] == ["station"]
    assert seen.alerts == []
    assert seen.total is not None
    (bucket,) = seen.buckets
    for figures in (seen.total, bucket.figures):
        assert figures.alpha is None
        assert figures.pooled_acceptance == pytest.approx(0.45)
        assert figures.mean_acceptance_length == pytest.approx(2.8)
        assert figures.waste_ratio == pytest.approx(0.55)
        assert figures.position_marginal == pytest.approx([0.9, 0.6, 0.3, 0.0])
    assert seen.tokens_per_second

    live = ask("report", Report)
    assert live.total is not None
    assert (live.total.pooled_acceptance, live.total.alpha) == (pytest.approx(0.45), None)
    with pytest.raises(BadInput, match="only observes"):
        ask("policy_set", PolicyResult, PolicySet(policy=PolicyMode(mode="off")))
    served = observer.figures()
    assert served["specdeck_all_pooled_acceptance"] == pytest.approx(0.45)
    assert served["specdeck_bucket_mean_acceptance_length"] == pytest.approx(2.8)
    assert served["specdeck_engine_up"] == 1
    assert not {"specdeck_all_acceptance_rate", "specdeck_all_sequences", "specdeck_engine_executed_k"} & served.keys()
    assert json.loads(observer.state_file.read_text())["extra"]["base_url"] == vllm.url
    assert SECRET not in observer.state_file.read_text()

    observer.process.send_signal(signal.SIGTERM)
    assert observer.process.wait(60) == 0, observer.output.read_text()
    output = observer.output.read_text()
    assert SECRET not in output
    assert "Traceback" not in output
    assert {authorization is not None for _, authorization in vllm.asked} == {True}
    with Store.open(observer.store, read_only=True) as store:
        stored = report(store.connection, source=str(observer.store))
    assert stored.total is not None
    assert stored.total.pooled_acceptance == pytest.approx(0.45)
    assert stored.total.position_marginal == pytest.approx([0.9, 0.6, 0.3, 0.0])
    assert stored.total.steps >= live.total.steps, "what was observed last was written too"
    assert SECRET not in everything_in(observer.store)


def everything_in(path: Path) -> str:
    """All rows of all tables, as text."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return "".join(str(connection.execute(f'FROM "{table}"').fetchall()) for table in tables)


def test_a_station_whose_server_is_away_says_so_and_goes_on(observe: Callable[[str], Observer]) -> None:
    observer = observe(closed_port())
    seen = observer.wait(lambda now: bool(now.alerts), "an alert")
    (alert,) = seen.alerts
    assert (alert.kind, alert.severity) == ("engine_down", "critical")
    assert "Connection refused" in alert.text
    assert (seen.engines, seen.buckets, seen.total) == ([], [], None)
    assert [event.kind for event in seen.events].count("scrape") == 1
    observer.process.send_signal(signal.SIGTERM)
    assert observer.process.wait(60) == 0, observer.output.read_text()
