"""The Map screen: what it fetches, shows and refuses, and the rehearsals that are started and broken off from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input

from console.app.application import SpecdeckApp
from console.app.drawing.line_view import LineView
from console.app.frame.dialogs import ConfirmDialog
from console.app.map.grid_view import MapGrid
from console.app.map.screen import MapScreen
from console.app.rehearsal import desk as rehearsal_desk
from console.app.rehearsal.dialog import RehearsalDialog
from console.feed.client import FeedError, Silence
from console.feed.messages import Snapshot
from engine.records import PolicyMode
from store.operating_map.records import OperatingMap
from store.rehearsal.plan import Plan
from tests.console import map_scenes, scenes
from tests.console.driving import NARROW, WIDE, running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed

MAP = map_scenes.operating_map()


@pytest.fixture(autouse=True)
def _plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal_desk, "built_in_plans", lambda: map_scenes.PLANS)


@asynccontextmanager
async def on_the_map(
    scene: Snapshot, held: OperatingMap | None = MAP, size: tuple[int, int] = NARROW, **options: Any
) -> AsyncIterator[tuple[SpecdeckApp, MemoryFeed, Pilot[Any]]]:
    async with running(scene, size=size, **options) as (app, feed, pilot):
        feed.map = held
        await press(pilot, "5")
        yield app, feed, pilot


async def press(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


def flat(app: SpecdeckApp) -> str:
    """What the screen or the dialog on top says, without line breaks."""
    return " ".join(" ".join(view.text for view in app.screen.query(LineView)).split())


def told(app: SpecdeckApp) -> str:
    return "\n".join(note.message for note in app._notifications)


async def answered(pilot: Pilot[Any], feed: MemoryFeed, method: str) -> Any:
    await until(pilot, lambda: bool(feed.actions(method)))
    (params,) = feed.actions(method)
    return params


# What it fetches


async def test_the_map_is_asked_for_when_the_station_holds_another_one_and_only_then() -> None:
    async with on_the_map(map_scenes.mapped()) as (app, feed, pilot):
        for number in range(2, 5):
            feed.say(replace(map_scenes.mapped(), number=number))
            await settled(pilot)
        assert len(feed.actions("map_get")) == 1
        feed.map = map_scenes.operating_map(id="another", plan="smoke")
        feed.say(map_scenes.mapped(map_=feed.map, number=5))
        await until(pilot, lambda: "map of plan smoke" in text_on(app))
        assert len(feed.actions("map_get")) == 2


async def test_an_answer_that_failed_is_asked_for_again_after_a_while() -> None:
    async with running(map_scenes.mapped(), size=NARROW) as (app, feed, pilot):
        feed.no_map = FeedError("deadline", "the station did not answer within 4 s")
        await press(pilot, "5")
        assert "can't be read: the station did not answer within 4 s" in flat(app)
        feed.no_map, feed.map = None, MAP
        feed.say(map_scenes.mapped(number=2, ts=scenes.NOW + 3))
        await settled(pilot)
        assert len(feed.actions("map_get")) == 1
        feed.say(map_scenes.mapped(number=3, ts=scenes.NOW + 11))
        await until(pilot, lambda: "map of plan full" in text_on(app))


async def test_without_a_map_it_says_what_would_be_here_and_how_it_comes() -> None:
    async with running(size=NARROW) as (app, feed, pilot):
        await press(pilot, "5")
        assert "shows here as soon as the station answers" in flat(app)
        feed.no_map = FeedError("unknown_method", "no method map_get")
        feed.say(scenes.calm())
        await settled(pilot)
        await until(pilot, lambda: "it is of an older specdeck" in flat(app))
        feed.no_map = None
        feed.say(replace(scenes.calm(), station="s2"))
        await until(pilot, lambda: "r rehearses here; `specdeck rehearse quick` does it from a shell" in flat(app))
        feed.say(replace(scenes.calm(), station="s2", rehearsal=map_scenes.rehearsal()))
        await until(pilot, lambda: "The rehearsal above makes one" in flat(app))
        assert len(feed.actions("map_get")) == 2, "once for each station"


async def test_a_record_has_no_map_and_is_not_asked_for_one() -> None:
    async with on_the_map(scenes.replayed(), None, intent="replay") as (app, feed, pilot):
        assert "No operating map in this record" in flat(app)
        await press(pilot, "r", "d")
        assert ["changes no engine" in note.message for note in app._notifications] == [True, True]
        assert not feed.actions("map_get")


async def test_the_last_map_stays_dimmed_while_the_station_is_away() -> None:
    async with on_the_map(map_scenes.mapped()) as (app, feed, pilot):
        feed.say(Silence(scenes.NOW - 12, "no snapshot"))
        await settled(pilot)
        assert "k2  1.45" in app.screen.query_one(MapGrid).text
        assert app.screen.has_class("-stale")


# The cursor


async def test_the_cursor_begins_where_the_engine_is_now_and_goes_with_the_arrow_keys_and_the_mouse() -> None:
    async with on_the_map(map_scenes.mapped(), size=WIDE) as (app, _, pilot):
        screen = app.screen
        assert isinstance(screen, MapScreen)

        def where() -> tuple[str | None, int] | None:
            cell = screen.grid.selected
            return None if cell is None else (cell.workload, cell.first)

        assert where() == (None, 5), "7 are running"
        await press(pilot, "down", "right", "right", "right")
        assert where() == ("code", 17), "at the edge it stays"
        assert "code · 17 to 32 running" in text_on(app)
        await pilot.click(MapGrid, offset=(14, 3))
        await settled(pilot)
        assert where() == ("chat", 1)
        await press(pilot, "end", "left")
        assert where() == ("creative", 1)


async def test_enter_explains_the_cell_with_formula_counts_and_what_was_left_out() -> None:
    async with on_the_map(map_scenes.mapped(map_scenes.STALE)) as (app, _, pilot):
        await press(pilot, "down", "enter")
        shown = flat(app)
        for words in (
            "code · 5 to 8 running", "k2 is best: 1.43× without (1.38 to 1.47)", "Σ emitted / Σ step duration",
            "3 repeats", "waiting in the queue", "The map is stale", "rehearsal 20260921-1200-full", "1,047",
        ):  # fmt: skip
            assert words in shown


async def test_a_hostile_workload_is_shown_as_it_is() -> None:
    held = map_scenes.operating_map(workloads=["code", scenes.HOSTILE], cells=[])
    async with on_the_map(map_scenes.mapped(map_=held), held, (200, 50)) as (app, _, pilot):
        await press(pilot, "end")
        assert scenes.HOSTILE[:20] in text_on(app)
        assert "Not measured: no arm ran long enough here" in flat(app)


# Deploying the schedule


@pytest.mark.parametrize(
    ("mode", "words", "sent_mode", "raises"),
    [
        (scenes.SCHEDULE, ("9──12 1 0 ▼", "3──4 4 2 ▼"), "schedule", False),
        (PolicyMode(mode="static", k=1), ("1──2 1 4 ▲", "9── 1 0 ▼"), "schedule", True),
        (PolicyMode(mode="adaptive", act=True), ("its bound is", "3──4 ≤4 ≤2 ▼"), "adaptive", False),
    ],
    ids=["schedule", "static", "adaptive"],
)
async def test_the_maps_schedule_is_shown_range_by_range_and_sent_after_a_yes(
    mode: PolicyMode, words: tuple[str, ...], sent_mode: str, raises: bool
) -> None:
    async with on_the_map(map_scenes.mapped(policy=mode)) as (app, feed, pilot):
        await press(pilot, "d")
        assert isinstance(app.screen, ConfirmDialog)
        for text in (*words, "of plan full, 2 h old", "undo"):
            assert text in flat(app)
        await press(pilot, "enter")  # not a yes
        assert not feed.actions("policy_set")
        await press(pilot, "y")
        params = await answered(pilot, feed, "policy_set")
        sent = msgspec.convert(params["policy"], PolicyMode)
        assert (sent.mode, sent.schedule) == (sent_mode, map_scenes.SCHEDULE)
        assert (params["expect"], params["why"]) == (3, "operating map 20260921-1200-full")
        assert params["confirm"] == (300.0 if raises else None)


async def test_a_schedule_that_is_in_force_already_is_not_sent_again() -> None:
    same = PolicyMode(mode="schedule", schedule=map_scenes.SCHEDULE)
    async with on_the_map(map_scenes.mapped(policy=same)) as (app, _, pilot):
        await press(pilot, "d")
        assert "in force already" in told(app)
        assert len(app.screen_stack) == 1


NO_SOURCE = {
    "largest K: 4 then, 6 now; r measures anew": map_scenes.mapped(map_scenes.STALE),
    "too little was measured": map_scenes.mapped(map_=map_scenes.operating_map(schedule=None)),
    "there is no operating map yet": scenes.calm(),
    "a rehearsal goes on already": map_scenes.rehearsing(),
    "only observes": replace(scenes.observed(), map=map_scenes.summary(MAP)),
}


async def test_a_map_that_is_no_source_of_a_policy_is_refused_with_the_reason() -> None:
    async with on_the_map(map_scenes.mapped()) as (app, feed, pilot):
        assert "d deploy" in app.screen.query_one("#keys", LineView).text
        for number, (reason, scene) in enumerate(NO_SOURCE.items(), 2):
            feed.say(replace(scene, number=number))
            await settled(pilot)
            assert "d deploy" not in app.screen.query_one("#keys", LineView).text
            await press(pilot, "d")
            assert reason in told(app)
        assert len(app.screen_stack) == 1


# Rehearsing


async def test_a_rehearsal_says_what_it_will_do_and_begins_only_after_a_yes() -> None:
    async with on_the_map(map_scenes.mapped()) as (app, feed, pilot):
        await press(pilot, "r", "down", "down", "enter")
        for words in (
            "About 3 h: 20 passes of 10 min and the fallback test", "requests of other clients wait longer",
            "is given back at the end", "`without` is left out here", "b on the Map screen breaks it off",
        ):  # fmt: skip
            assert words in flat(app)
        await press(pilot, "enter")
        assert not feed.actions("rehearsal_start")
        feed.refusal = FeedError("unknown_method", "this station is older and rehearses nothing")
        await press(pilot, "y")
        assert await answered(pilot, feed, "rehearsal_start") == {"plan": "full"}
        await until(pilot, lambda: "this station is older" in told(app))


async def test_a_plan_of_ones_own_is_read_first_and_what_is_wrong_with_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(source: str) -> Plan:
        if source.endswith("bad.toml"):
            raise ValueError(f"{source}: the shares of the mix add up to 0.9; make them 1")
        return map_scenes.plan("mine", ("k0", "k1"), 30.0)

    monkeypatch.setattr(rehearsal_desk, "read_plan", read)
    async with on_the_map(map_scenes.mapped()) as (app, feed, pilot):
        await press(pilot, "r", "tab", *"bad.toml", "enter")
        assert isinstance(app.screen, RehearsalDialog)
        assert "add up to 0.9" in flat(app)
        app.screen.query_one(Input).value = "mine.toml"
        await press(pilot, "enter", "y")
        assert await answered(pilot, feed, "rehearsal_start") == {"plan": str(Path("mine.toml").absolute())}
        await until(pilot, lambda: "rehearsal of plan mine begins" in told(app))


async def test_a_rehearsal_that_goes_on_is_watched_and_broken_off_after_a_yes() -> None:
    async with on_the_map(map_scenes.rehearsing()) as (app, feed, pilot):
        shown = flat(app)
        for words in ("pass 3 of 10", "arm k2", "phase busy", "7:32 left", "sent 1,204", "errors 0", "lag 4 ms"):
            assert words in shown
        await press(pilot, "r")
        assert "a rehearsal goes on already; b breaks it off" in told(app)
        await press(pilot, "b", "enter")
        assert not feed.actions("rehearsal_stop")
        assert "specdeck rehearse --resume 20260921-1412-quick" in flat(app)
        await press(pilot, "y")
        assert await answered(pilot, feed, "rehearsal_stop") == {"id": "20260921-1412-quick"}
        feed.say(map_scenes.rehearsing(state="stopped", seconds_left=None, note="2 passes are kept"))
        await until(pilot, lambda: "2 passes are kept" in flat(app))
        assert "rehearsal" not in app.screen.query_one("#status", LineView).text
        await press(pilot, "r")
        assert isinstance(app.screen, RehearsalDialog), "another may begin"


async def test_who_may_only_read_can_neither_rehearse_nor_deploy() -> None:
    async with on_the_map(map_scenes.mapped(), read_only=True) as (app, _, pilot):
        await press(pilot, "r", "d")
        assert ["read-only" in note.message for note in app._notifications] == [True, True]
        assert len(app.screen_stack) == 1


# Elsewhere


async def test_every_screen_says_that_a_rehearsal_goes_on() -> None:
    async with running(map_scenes.rehearsing(), size=WIDE) as (app, _, pilot):
        for key in ("1", "3", "5", "7"):
            await press(pilot, key)
            assert "rehearsal 3/10 k2" in app.screen.query_one("#status", LineView).text


async def test_the_policy_screen_shows_the_maps_k_below_the_schedule_and_marks_it_stale() -> None:
    async with running(map_scenes.mapped(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3")
        lines = app.screen.query_one("#policy-facts", LineView).text.splitlines()
        (row,) = (row for row, line in enumerate(lines) if line.startswith("   map "))
        assert "1──2: K 4 │ 3──4: K 2 │ 5──8: K 1 │ 9──: 0" in lines[row]
        assert "K by batch" in lines[row - 1]
        feed.say(map_scenes.mapped(map_scenes.STALE, number=2))
        await settled(pilot)
        assert "▲ stale 1──2: K 4" in app.screen.query_one("#policy-facts", LineView).text
        assert not feed.actions("map_get"), "the summary is enough"


async def test_a_path_under_nobodys_home_is_refused_and_the_console_goes_on() -> None:
    async with on_the_map(map_scenes.mapped()) as (app, feed, pilot):
        await press(pilot, "r", "tab")
        assert isinstance(app.screen, RehearsalDialog)
        app.screen.query_one(Input).value = "~nobodyhere/p.toml"
        await press(pilot, "enter")
        assert isinstance(app.screen, RehearsalDialog)
        assert "■" in flat(app)
        assert not feed.actions("rehearsal_start")
