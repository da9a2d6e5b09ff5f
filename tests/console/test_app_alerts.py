"""The Alerts screen: what is shown first, what speaks for it, and what its keys tell the station."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from console.app.alerts.lines import alert_detail, alert_lines, alert_row
from console.app.alerts.screen import AlertsScreen
from console.app.alerts.words import evidence_words
from console.app.bucket.screen import BucketScreen
from console.app.drawing import numbers
from console.app.drawing.spans import text_of, width_of
from console.app.live.screen import LiveScreen
from console.feed.client import FeedError
from console.feed.messages import AlertView
from tests.console import scenes
from tests.console.driving import running, settled, text_on, until

DOWN = AlertView(
    kind="engine_down", severity="critical", state="firing", text="engine e0 is down", started=scenes.NOW - 9
)


def test_what_fires_comes_first_the_gravest_before_the_newest_and_the_past_last() -> None:
    lines = alert_lines(scenes.alert_history(), [*scenes.drifting(), DOWN])
    assert [line.view.kind for line in lines] == [
        "engine_down", "drift", "failing_workload", "speedup_floor", "shift",
    ]  # fmt: skip


def test_the_snapshot_is_newer_than_the_history() -> None:
    (drift, _) = scenes.drifting()
    over = replace(drift, state="resolved", ended=scenes.NOW)
    line = next(line for line in alert_lines(scenes.alert_history(), [over]) if line.view.id == drift.id)
    assert (line.view.state, line.report is not None) == ("resolved", True)


def test_a_fact_that_the_judge_has_found_too_is_there_once() -> None:
    judged = replace(
        scenes.alert_history()[1], id=9, kind="engine_down", severity="critical", text="engine e0: is down"
    )
    lines = alert_lines([judged], [DOWN])
    assert [line.view.id for line in lines] == [9]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_rows_and_details_fit_whatever_a_tag_holds(width: int) -> None:
    hostile = replace(DOWN, text=f"{scenes.HOSTILE} \x1b[2J" * 30)
    for line in alert_lines(scenes.alert_history(), [hostile]):
        assert width_of(alert_row(line, scenes.NOW, width)) <= width
        for part in alert_detail(line, scenes.NOW, width):
            assert width_of(part) <= width
            assert "\x1b" not in text_of(part)


def test_an_acceptance_alert_says_both_levels_with_their_samples_and_its_bound() -> None:
    drift = next(report for report in scenes.alert_history() if report.kind == "drift")
    words = evidence_words(drift)
    for part in ("depth 1", "47.1 % (n 4211)", "38.0 % (n 97, worth 61.4)", "−5.2 points"):
        assert part in words


async def test_four_opens_it_and_the_detail_follows_the_cursor() -> None:
    async with running(scenes.live(alerts=scenes.drifting())) as (app, _, pilot):
        await pilot.press("4")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, AlertsScreen)
        assert "alerts · 2 firing · 1 pending · 1 over" in text_on(app)
        assert "47.1 %" in text_on(app)
        await pilot.press("down")
        assert "acknowledged by ada" in text_on(app)
        await pilot.press("end")
        assert "head@1a2b" in text_on(app)


@pytest.mark.parametrize(("key", "act"), [("a", "acknowledge"), ("z", "snooze")])
async def test_keys_tell_the_station(key: str, act: str) -> None:
    async with running(scenes.live(alerts=scenes.drifting())) as (_, feed, pilot):
        await pilot.press("4")
        await settled(pilot)
        await pilot.press(key)
        await until(pilot, lambda: bool(feed.actions("alert_act")))
        (told,) = feed.actions("alert_act")
        assert (told["id"], told["act"]) == (7, act)


async def test_a_new_level_is_accepted_after_a_question_only() -> None:
    async with running(scenes.live(alerts=scenes.drifting())) as (_, feed, pilot):
        await pilot.press("4")
        await settled(pilot)
        await pilot.press("A", "escape")
        assert feed.actions("alert_act") == []
        await pilot.press("A", "y")
        await until(pilot, lambda: bool(feed.actions("alert_act")))
        assert feed.actions("alert_act")[0]["act"] == "accept"


async def test_what_cannot_be_told_is_said_and_not_sent() -> None:
    async with running(scenes.live(alerts=[DOWN]), size=(200, 50)) as (app, feed, pilot):
        await pilot.press("4")
        await settled(pilot)
        await pilot.press("a")
        assert any("plain fact" in note.message for note in app._notifications)
        await pilot.press("end", "a")
        await pilot.pause()
        assert feed.actions("alert_act") == [], "the last line is over"


async def test_a_read_only_console_tells_nobody() -> None:
    async with running(scenes.live(alerts=scenes.drifting()), read_only=True) as (_, feed, pilot):
        await pilot.press("4")
        await settled(pilot)
        for key in ("a", "z", "A"):
            await pilot.press(key)
        assert feed.actions("alert_act") == []


async def test_enter_goes_to_the_moment_in_the_bucket_and_back_to_it_through_a_filter() -> None:
    async with running(scenes.live(alerts=scenes.drifting())) as (app, _, pilot):
        await pilot.press("slash", *"code", "enter", "4")
        await settled(pilot)
        await pilot.press("enter")
        chat, moment = scenes.key("chat", "0-512", "(0,0.5]"), scenes.NOW - 760
        await until(pilot, lambda: isinstance(app.screen, BucketScreen))
        assert isinstance(app.screen, BucketScreen)
        assert app.screen.looking_at == (chat, "15 min", moment)
        await settled(pilot)
        assert f"▲ {numbers.clock(moment)} chat 0-512" in text_on(app)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert isinstance(app.screen, LiveScreen)
        assert app.screen.table.cursor == chat


async def test_in_a_replay_enter_goes_to_the_moment() -> None:
    async with running(replace(scenes.replayed(), alerts=scenes.drifting()), intent="replay") as (_, feed, pilot):
        await pilot.press("4")
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: any(act["act"] == "seek" for act in feed.actions("replay_act")))
        (seek,) = [act for act in feed.actions("replay_act") if act["act"] == "seek"]
        assert seek["ts"] == scenes.NOW - 760


async def test_a_history_that_cannot_be_read_is_said_and_what_fires_is_shown() -> None:
    async with running(scenes.live(alerts=scenes.drifting())) as (app, feed, pilot):
        feed.alerts = []
        feed.no_alerts = FeedError("failed", "the store is locked")
        await pilot.press("4")
        await settled(pilot)
        assert "the store is locked" in text_on(app)
        assert "9.1 points" in text_on(app)
