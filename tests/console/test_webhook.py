"""The webhook, against a real server that is slow, broken, elsewhere or gone; and that its address is a secret."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec.structs import replace

from console.cli.bundling.station_found import FoundStation, private_to
from console.feed.messages import AlertView
from console.station.notifying import Notifying
from console.station.options import StationOptions
from console.station.webhook import NotDelivered, Webhook
from console.station.webhook_address import BadWebhook, read_webhook, secret_parts
from store.bundle.parts import json_part
from store.judge.alerts import Alert
from store.redact.redactor import Redactor
from store.redact.secret_names import secret_values
from tests.console import scenes
from tests.ports import free_port

SECRET = "T024/B77/s3cr3tXYZ"
CHAT = scenes.key("chat", "0-512", "(0,0.5]")
DRIFT = AlertView(
    kind="drift", severity="warn", state="firing", text="chat: <!channel> see http://evil.example", started=scenes.NOW,
    bucket=CHAT, id=7,
)  # fmt: skip
JUDGED = Alert(
    id=7, kind="drift", severity="warn", engine="e0", bucket=CHAT, state="firing", pending_since=scenes.NOW,
    started=scenes.NOW, evidence={"present": 0.38, "reference": 0.47, "n": 97},
)  # fmt: skip
DOWN = AlertView(
    kind="engine_down", severity="critical", state="firing", text="engine e0 is down", started=scenes.NOW, cause="e0"
)


class Receiver(ThreadingHTTPServer):
    """Answers with `statuses` one after the other, the last for ever, each after `delay` seconds."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses = [200]
        self.delay = 0.0
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def address(self) -> str:
        return f"http://ada:pass-word@127.0.0.1:{self.server_port}/services/{SECRET}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        receiver = self.server
        receiver.paths.append(self.path)
        receiver.headers.append(dict(self.headers))
        receiver.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        time.sleep(receiver.delay)
        status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def webhook(address: str, **more: Any) -> Webhook:
    return Webhook(read_webhook(address), **{"pauses": (0.01, 0.02), "try_seconds": 5.0, **more})


class Desk:
    """A station's part that has to do with it."""

    def __init__(self, address: str, **more: Any) -> None:
        self.alerts: list[AlertView] = []
        self.judged: list[Alert] = [JUDGED]
        self.told: list[str] = []
        self.now = 0.0
        self.notifying = Notifying(
            webhook(address, **more), "s1", lambda: self.alerts, lambda: self.judged,
            lambda kind, text: self.told.append(text), a_minute=3, gather=0.0, clock=lambda: self.now,
        )  # fmt: skip

    async def shows(self, *alerts: AlertView) -> None:
        """A picture with these; what is sent of it has arrived, or was given up."""
        self.alerts = list(alerts)
        self.now += 61.0
        self.notifying.look()
        await self.sent()

    async def sent(self) -> None:
        if self.notifying._sending is not None:
            await self.notifying._sending


async def test_an_alert_is_posted_when_it_begins_and_when_it_is_over_with_all_that_is_known(receiver: Receiver) -> None:
    desk = Desk(receiver.address)
    await desk.shows(DRIFT)
    await desk.shows(DRIFT)
    desk.judged = []
    await desk.shows()
    begin, end = receiver.bodies
    assert begin["alerts"] == [
        {
            "event": "fires", "kind": "drift", "severity": "warn", "state": "firing", "workload": "chat",
            "context": "0-512", "temperature": "(0,0.5]", "model_version": scenes.VERSION,
            "sentence": "chat: <!channel> see evil.example", "started": scenes.NOW, "ended": None, "value": 0.38,
            "threshold": 0.47, "id": 7,
        }
    ]  # fmt: skip
    assert (begin["version"], begin["source"], begin["station"], begin["left_out"]) == (1, "specdeck", "s1", 0)
    assert begin["text"] == "specdeck: ▲ chat: ‹!channel› see evil.example", "no mention, no link"
    assert [(one["event"], one["state"], one["value"]) for one in end["alerts"]] == [("over", "resolved", 0.38)]
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert receiver.headers[0]["Authorization"].startswith("Basic ")
    assert receiver.paths == [f"/services/{SECRET}"] * 2
    assert desk.told == []


async def test_a_server_that_fails_is_tried_again_and_in_the_end_it_is_said_once_and_counted(
    receiver: Receiver,
) -> None:
    receiver.statuses = [500, 503, 200]
    desk = Desk(receiver.address)
    await desk.shows(DRIFT)
    assert (len(receiver.bodies), desk.told) == (3, [])
    receiver.statuses = [500]
    await desk.shows(DRIFT, DOWN)
    await desk.shows(DRIFT)
    (said,) = desk.told
    assert "it answers 500" in said
    receiver.statuses = [200]
    await desk.shows()
    assert (receiver.bodies[-1]["left_out"], receiver.bodies[-1]["left_out_critical"]) == (2, 1)
    assert "works again; 2 notices did not get there" in desk.told[-1]
    assert not any(SECRET in text or "pass-word" in text for text in desk.told)


@pytest.mark.parametrize(("status", "words"), [(302, "a redirect"), (404, "answers 404"), (410, "answers 410")])
async def test_what_no_other_try_would_help_is_not_tried_again(receiver: Receiver, status: int, words: str) -> None:
    receiver.statuses = [status]
    with pytest.raises(NotDelivered, match=words):
        await webhook(receiver.address).deliver(b"{}")
    assert len(receiver.bodies) == 1, "nor is a redirect followed"


async def test_one_that_never_answers_holds_up_nothing_and_what_comes_meanwhile_is_one_message(
    receiver: Receiver,
) -> None:
    receiver.delay = 0.3
    desk = Desk(receiver.address, try_seconds=0.1, pauses=(0.05,))
    desk.alerts = [DRIFT]
    began = time.monotonic()
    desk.notifying.look()
    others = [replace(DOWN, cause=f"e{number}") for number in range(150)]
    for number in range(150):
        desk.alerts = [DRIFT, *others[: number + 1]]
        desk.notifying.look()
        await asyncio.sleep(0)
    assert time.monotonic() - began < 5.0
    await desk.sent()
    assert "no answer within 0.1 s" in desk.told[0]
    receiver.delay = 0.0
    desk.now += 61.0
    desk.notifying.look()
    await desk.sent()
    last = receiver.bodies[-1]
    assert (len(last["alerts"]), last["left_out"], last["left_out_critical"]) == (100, 51, 50)


async def test_one_that_is_gone_is_said_without_its_address() -> None:
    with pytest.raises(NotDelivered, match=r"^it can't be reached \(ConnectError\)$"):
        await webhook(f"http://127.0.0.1:{free_port()}/{SECRET}").deliver(b"{}")


async def test_one_that_talks_nonsense_or_drops_the_line_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        tries = []

        def answer() -> None:
            for reply in (b"what?\r\n\r\n", b"", b"HTTP/1.1 204 No Content\r\n\r\n"):
                connection, _ = server.accept()
                with connection:
                    tries.append(connection.recv(65536))
                    connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        await webhook(f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}").deliver(b"{}")
        thread.join()
    assert len(tries) == 3


async def test_only_alerts_that_are_grave_enough_are_posted(receiver: Receiver) -> None:
    desk = Desk(receiver.address)
    await desk.shows(replace(DRIFT, severity="info"), replace(DOWN, acknowledged="ada"))
    assert receiver.bodies == []


@pytest.mark.parametrize(
    "text", [f"ftp://h/{SECRET}", SECRET, f"https:///{SECRET}", f"http://h:99999/{SECRET}", f"http://[::1/{SECRET}", 7]
)
def test_an_address_that_cannot_be_meant_is_refused_and_not_repeated(text: Any) -> None:
    with pytest.raises(BadWebhook) as caught:
        read_webhook(text)
    assert SECRET not in str(caught.value)


HOOK = f"https://ada:pass-word@hooks.example.org:8443/services/{SECRET}?token=abcdefgh#x"


def test_only_the_host_of_an_address_may_be_seen() -> None:
    assert read_webhook(HOOK).shown == "https://hooks.example.org:8443/…"
    assert read_webhook("http://[::1]:9000").shown == "http://[::1]:9000"
    for secret in (HOOK, f"/services/{SECRET}", "pass-word", "token=abcdefgh"):
        assert secret in secret_parts(HOOK)
    assert list(secret_values({"SPECDECK_NOTIFY_WEBHOOK": HOOK})) == [HOOK]


def test_a_bundle_holds_nothing_of_it() -> None:
    options = StationOptions(store="/x.duckdb", webhook=HOOK)
    redactor = Redactor(private_to(FoundStation(None, options, [], {}, None)))
    told = json_part({"options": options, "log": f"POST /services/{SECRET}?token=abcdefgh by pass-word"}, redactor)
    for secret in (SECRET, "pass-word", "abcdefgh"):
        assert secret not in told.decode()
