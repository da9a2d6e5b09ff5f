"""The demo's traffic as a console asks for it: begun once, watched, ended by hand or with the station, and refused
where there is nothing to send it to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from console.app.actions import ACTIONS, label_of, unmet
from console.app.drawing.spans import text_of
from console.app.live.demo import demo_lines, demo_part
from console.app.live.startup import before_buckets
from console.app.picture import Link, Picture
from console.feed.messages import DemoTrafficView, GatewayView, RehearsalView
from console.station.demo_acts import hindrance
from console.station.demo_traffic import KEPT_SECONDS, DemoTraffic, progress_path
from console.station.rehearsal_process import Refused
from console.traffic.progress import Progress
from tests.console import scenes
from tests.console.driving import running, until

SLEEPS = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
FAILS = [sys.executable, "-S", "-c", "import sys; print('traffic: no server: refused'); sys.exit(3)"]
ENDS = [sys.executable, "-S", "-c", ""]
SENDING = Progress(
    phase="gentle", seconds_left=151.0, sent=17, done=15, in_flight=2, errors={"http 503": 1}, shed={},
    tokens_per_second=40.0,
)  # fmt: skip


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0.0
        self.told: list[str] = []
        self.hindrance: str | None = None

    def traffic(self, command: list[str] = SLEEPS) -> DemoTraffic:
        return DemoTraffic(
            "http://127.0.0.1:1", self.folder, self.folder, lambda kind, text: self.told.append(text),
            lambda: self.hindrance, command=command, clock=lambda: self.now,
        )  # fmt: skip

    def sends(self, progress: Progress = SENDING) -> None:
        progress_path(self.folder).write_bytes(msgspec.json.encode(progress))


@pytest.fixture
def watched(place: Path) -> Iterator[Watched]:
    from console.cli.leftovers import end_all

    (place / "run").mkdir(mode=0o700)
    yield Watched(place / "run")
    end_all()


def look_until(traffic: DemoTraffic, state: str) -> DemoTrafficView:
    async def looking() -> None:
        async with asyncio.timeout(30):
            while (view := traffic.view()) is None or view.state != state:
                await asyncio.sleep(0.02)
                await traffic.look()

    asyncio.run(looking())
    view = traffic.view()
    assert view is not None
    return view


def test_it_tells_how_it_stands_and_is_ended_by_hand(watched: Watched) -> None:
    traffic = watched.traffic()
    assert traffic.start(180.0).state == "waiting"
    with pytest.raises(Refused, match="goes on already"):
        traffic.start(180.0)
    watched.sends()
    seen = look_until(traffic, "running")
    assert (seen.sent, seen.done, seen.errors, seen.seconds_left) == (17, 15, 1, 151.0)
    stopped = asyncio.run(traffic.stop())
    assert (stopped.state, stopped.pid, traffic.pid) == ("stopped", None, None)
    with pytest.raises(Refused, match="no demo traffic"):
        asyncio.run(traffic.stop())
    watched.now += KEPT_SECONDS + 1
    asyncio.run(traffic.look())
    assert traffic.view() is None


def test_its_end_is_told_as_what_it_was(watched: Watched) -> None:
    failing = watched.traffic(FAILS)
    failing.start(180.0)
    assert "no server: refused" in look_until(failing, "failed").note
    ending = watched.traffic(ENDS)
    ending.start(180.0)
    assert look_until(ending, "over").note == ""


def test_what_another_station_began_is_found_and_ended_with_this_one(watched: Watched) -> None:
    first = watched.traffic()
    pid = first.start(180.0).pid
    heir = watched.traffic()
    assert look_until(heir, "waiting").pid == pid
    asyncio.run(heir.end())
    assert look_until(first, "failed").pid is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, 3601.0, float("nan")])
def test_it_lasts_no_impossible_time(watched: Watched, seconds: float) -> None:
    with pytest.raises(Refused, match="seconds"):
        watched.traffic().start(seconds)


def test_it_is_refused_where_nothing_would_answer_or_something_would_be_spoilt(watched: Watched) -> None:
    serving, down = GatewayView("http://h:1", "serving"), GatewayView("http://h:1", "down", detail="port taken")
    rehearsal = RehearsalView(id="r", plan="quick", state="running")
    assert "no engine of its own" in (hindrance(None, serving, None) or "")
    assert "starting" in (hindrance("starting", serving, None) or "")
    assert "port taken" in (hindrance("serving", down, None) or "")
    assert "rehearsal" in (hindrance("serving", serving, rehearsal) or "")
    assert hindrance("serving", serving, replace(rehearsal, state="over")) is None
    watched.hindrance = "not now"
    with pytest.raises(Refused, match="not now"):
        watched.traffic().start(180.0)


# On the screen

RUNS = DemoTrafficView(state="running", phase="gentle", seconds_left=151.0, sent=17, done=15)


def shown(snapshot: object, **options: object) -> str:
    now = Picture(Link("connected", scenes.NOW), scenes.NOW, snapshot, **options)  # type: ignore[arg-type]
    return "\n".join(map(text_of, before_buckets(now, 100, 40)))


def test_an_empty_console_offers_it_and_then_says_how_it_goes() -> None:
    assert "d  sends the demo's traffic" in shown(scenes.no_bucket())
    assert "specdeck demo" in shown(scenes.no_bucket(), read_only=True)
    said = shown(replace(scenes.no_bucket(), demo=RUNS))
    assert "17 requests sent, 15 answered, 2:31 left  d ends it" in said
    assert text_of(demo_part(RUNS).spans) == "demo 2:31"
    over = replace(RUNS, state="over")
    assert "is over: 15 of 17" in text_of(demo_lines(over, 80)[0])
    assert demo_part(over).spans == ()


@pytest.mark.parametrize(
    ("snapshot", "options", "reason"),
    [
        (scenes.live(), {}, "traffic here already"),
        (scenes.no_bucket(), {"read_only": True}, "read-only"),
        (scenes.starting(), {}, "no engine is serving"),
        (replace(scenes.observed(), buckets=[]), {}, "only observes"),
        (replace(scenes.replayed(), buckets=[]), {}, "changes no engine"),
    ],
)
def test_the_key_says_why_not(snapshot: object, options: dict[str, bool], reason: str) -> None:
    now = Picture(Link("connected", scenes.NOW), scenes.NOW, snapshot, **options)  # type: ignore[arg-type]
    assert reason in (unmet(ACTIONS["demo_traffic"], now) or "")


async def test_the_key_asks_begins_it_and_ends_it() -> None:
    async with running(scenes.no_bucket()) as (app, feed, pilot):
        await pilot.press("d")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert not feed.actions("demo_start")
        await pilot.press("y")
        await until(pilot, lambda: feed.actions("demo_start") == [{"seconds": 180.0}])
        feed.say(scenes.live(demo=RUNS))
        await until(pilot, lambda: app.picture.snapshot is not None and app.picture.snapshot.demo is not None)
        assert label_of(ACTIONS["demo_traffic"], app.picture) == "end the demo"
        await pilot.press("d")
        await until(pilot, lambda: bool(feed.actions("demo_stop")))
