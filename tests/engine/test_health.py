"""Health over the unix socket, and how a start's log is read."""

from __future__ import annotations

import http.server
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.health import failure_reason, healthy, healthy_async, startup_phases

STARTING = """\
INFO 11-29 18:30:05 [api_utils.py:347] version 0.32.0
(EngineCore pid=2) INFO 11-29 18:30:12 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'
(Worker pid=3) INFO 11-29 18:30:22 [default_loader.py:501] Loading weights took 1.27 seconds
"""


class UnixHttpServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    status = 200


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(UnixHttpServer.status if self.path == "/health" else 404)
        self.send_header("content-length", "0")
        self.end_headers()

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    UnixHttpServer.status = 200
    path = tmp_path / "s"
    with UnixHttpServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield path
        server.shutdown()


async def test_an_engine_is_healthy_while_its_health_page_answers_200(server: Path) -> None:
    assert healthy(server)
    assert await healthy_async(server)
    UnixHttpServer.status = 503
    assert not healthy(server)
    assert not await healthy_async(server)


async def test_an_absent_a_stale_and_a_silent_socket_are_unhealthy(tmp_path: Path) -> None:
    assert not healthy(tmp_path / "none")
    stale = tmp_path / "stale"
    with socket.socket(socket.AF_UNIX) as once:
        once.bind(str(stale))
    assert not healthy(stale)
    silent = tmp_path / "silent"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(silent))
        listening.listen()
        assert not healthy(silent, timeout=0.1)
        assert not await healthy_async(silent, timeout=0.1)


def test_phases_follow_the_log() -> None:
    assert not any(phase.done for phase in startup_phases(""))
    assert [phase.name for phase in startup_phases(STARTING) if phase.done] == ["process", "engine core", "weights"]
    assert all(phase.done for phase in startup_phases("INFO:     Application startup complete.\n"))


def test_the_reason_of_a_failed_start_is_the_last_error_line() -> None:
    log = STARTING + (
        "(EngineCore pid=2) ERROR 11-29 [core.py:9] Traceback (most recent call last):\n"
        "(EngineCore pid=2) ERROR 11-29 [core.py:9] ValueError: not enough memory for the KV cache\n"
        "(APIServer pid=1)   warnings.warn(\n"
    )
    assert failure_reason(log) == "ValueError: not enough memory for the KV cache"
    assert failure_reason(STARTING) is None
