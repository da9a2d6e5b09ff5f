"""`[` and `]` on the Live screen: one window for all figures of this console, from a station or from a replay."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from console.app.application import SpecdeckApp
from console.app.drawing.spans import text_of
from console.app.frame.statusline import key_line
from console.app.live.screen import LiveScreen
from console.feed.client import FeedError, Silence
from console.feed.messages import Snapshot
from tests.console import scenes
from tests.console.driving import LARGE, NARROW, WIDE, running, settled, text_on, until


def live(app: SpecdeckApp) -> LiveScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, LiveScreen)
    return screen


def keys(app: SpecdeckApp) -> str:
    return text_on(app).splitlines()[-1]


async def test_a_window_that_was_fixed_is_that_of_all_figures() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        assert "window 5 min ·" in text_on(app)
        assert "pooled α .55 · waste .45" in text_on(app)
        await pilot.press("]", "]")
        await until(pilot, lambda: "window 1 h (fixed)" in text_on(app))
        assert [one["window"] for one in feed.actions("buckets")] == [300.0, 3600.0]
        assert {bucket.figures.sequences for bucket in (live(app)._shown or scenes.live()).buckets} == {
            1180, 640, 970, 410, 120, 20, 310,
        }  # fmt: skip
        assert "waste .33 · alerts are judged over windows of their own" in text_on(app)
        assert "] 1 h fixed" in keys(app)
        await pilot.press("enter")
        await settled(pilot)
        assert "1 h fixed (" in text_on(app)
        assert "1,180 sequences" in text_on(app)
        await pilot.press("escape", "[", "[")
        await settled(pilot)
        assert "window 5 min ·" in text_on(app)
        assert "pooled α .55 · waste .45" in text_on(app)
        await pilot.press("[")
        assert "] fixes one" in list(app._notifications)[-1].message


@pytest.mark.parametrize("size", [NARROW, (80, 36), WIDE, LARGE], ids=["80x24", "80x36", "120x36", "200x50"])
async def test_that_it_is_fixed_is_in_sight_at_every_size(size: tuple[int, int]) -> None:
    async with running(scenes.live(), size=size) as (app, _, pilot):
        await pilot.press("]")
        await until(pilot, lambda: "fixed" in text_on(app))
        assert "] 5 min fixed" in keys(app)


async def test_alerts_and_states_stay_the_judge_s() -> None:
    drifting = scenes.live(alerts=scenes.drifting())
    async with running(drifting) as (app, _, pilot):
        before = [line[-14:].strip(" │") for line in text_on(app).splitlines()[2:9]]
        await pilot.press("]")
        await until(pilot, lambda: "(fixed)" in text_on(app))
        assert [line[-14:].strip(" │") for line in text_on(app).splitlines()[2:9]] == before
        assert "drift" in before
        assert "keep the judge's windows" in next(iter(app._notifications)).message


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FeedError("unknown_method", "no method 'buckets'"), "this station is older than the console"),
        (FeedError("refused", "this station only observes"), "this station only observes"),
    ],
    ids=["old", "observes"],
)
async def test_a_station_that_can_t_is_named_and_each_bucket_chooses_again(error: FeedError, said: str) -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.no_windows = error
        await pilot.press("]")
        await until(pilot, lambda: len(app._notifications) == 2)
        assert said in list(app._notifications)[-1].message
        assert "window 5 min ·" in text_on(app)
        assert "fixed" not in keys(app)


async def test_without_a_station_the_last_picture_has_its_own_windows_and_says_so() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("]", "]")
        await until(pilot, lambda: "(fixed)" in text_on(app))
        feed.say(Silence(scenes.NOW - 2, "no snapshot"))
        await settled(pilot)
        assert "window 5 min (1 h fixed: no station)" in text_on(app)
        assert "1,180" not in text_on(app)
        feed.say(scenes.live(number=9))
        await until(pilot, lambda: "window 1 h (fixed)" in text_on(app))


async def test_figures_that_nobody_renews_are_not_shown_for_the_present_ones() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("]")
        await until(pilot, lambda: "(fixed)" in text_on(app))
        feed.no_windows = FeedError("deadline", "the station did not answer")
        feed.say(scenes.live(number=2, ts=scenes.NOW + 6))
        await settled(pilot)
        assert "window 5 min (5 min fixed: no answer)" in text_on(app)
        feed.no_windows = None
        await until(pilot, lambda: "window 5 min (fixed)" in text_on(app))


async def test_while_the_picture_is_held_nothing_is_asked_and_none_is_fixed() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("]")
        await until(pilot, lambda: "(fixed)" in text_on(app))
        await pilot.press("p")
        asked = len(feed.actions("buckets"))
        feed.say(scenes.live(number=2, ts=scenes.NOW + 60))
        live(app)._windows.look()
        await pilot.press("]")
        await settled(pilot)
        assert len(feed.actions("buckets")) == asked
        assert "window 5 min (fixed)" in text_on(app)
        assert "p lets it go on" in list(app._notifications)[-1].message


async def test_it_is_asked_for_at_most_once_a_second() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("]")
        await until(pilot, lambda: "(fixed)" in text_on(app))
        for number in range(2, 12):
            feed.say(scenes.live(number=number, ts=scenes.NOW + number / 100))
        await settled(pilot)
        for _ in range(5):
            live(app)._windows.look()
        assert len(feed.actions("buckets")) <= 2


async def test_a_replay_answers_as_of_its_clock_and_at_once_after_a_seek() -> None:
    def at(ts: float, number: int) -> Snapshot:
        return replace(scenes.replayed(ts, number, playing=False), buckets=scenes.four_workloads())

    async with running(at(scenes.NOW, 1)) as (app, feed, pilot):
        await pilot.press("]")
        await until(pilot, lambda: "window 5 min (fixed)" in text_on(app))
        feed.say(at(scenes.NOW + 300, 2))
        await until(pilot, lambda: len(feed.actions("buckets")) == 2)
        await settled(pilot)
        assert "window 5 min (fixed)" in text_on(app)
        feed.no_windows = FeedError("deadline", "the replay did not answer")
        feed.say(at(scenes.NOW + 600, 3))
        await until(pilot, lambda: "(fixed, as of 1" in text_on(app))


def test_what_a_key_has_begun_is_named_where_the_key_line_is_short() -> None:
    from console.app.actions import in_context
    from console.app.picture import Link, Picture

    picture = Picture(Link("connected", scenes.NOW), scenes.NOW, scenes.live())
    shown = [*in_context("live"), *in_context("everywhere")]

    def line(**changes: object) -> str:
        from dataclasses import replace as changed

        return text_of(key_line(shown, changed(picture, **changes), {}, 80, "live"))  # type: ignore[arg-type]

    assert "compare with…" in line(compared=scenes.key("code"))
    assert "] 6 h fixed" in line(window="6 h", compared=scenes.key("code"))
