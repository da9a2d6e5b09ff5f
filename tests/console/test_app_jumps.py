"""From what happened to where it shows: a control to its effect, an alert line to its bucket, there and in a replay."""

from __future__ import annotations

import pytest

from console.app.application import SpecdeckApp
from console.app.bucket.screen import BucketScreen
from console.app.picture import Link, Picture
from console.app.policy.concerned import bucket_of
from console.feed.messages import Snapshot
from store.figures import BucketKey
from tests.console import scenes
from tests.console.driving import NARROW, running, settled, until
from tests.console.test_app_replay import acts

CODE, REPEAT = scenes.key("code"), scenes.key("repeat", "512-2048")
CHAT = scenes.key("chat", "0-512", "(0,0.5]")
NOW = scenes.NOW


def served() -> Snapshot:
    return scenes.live(workloads=scenes.workloads())


def looking_at(app: SpecdeckApp) -> tuple[BucketKey | None, str, float | None]:
    assert isinstance(app.screen, BucketScreen)
    return app.screen.looking_at


async def test_from_a_change_to_its_moment_in_the_bucket_it_concerns() -> None:
    async with running(served(), size=NARROW) as (app, _, pilot):
        await pilot.press("3", "tab", "down", "enter")  # 14:06 adaptive: code K 3→4
        await settled(pilot)
        assert looking_at(app) == (CODE, "15 min", NOW - 540)


async def test_what_concerns_all_is_looked_at_in_the_bucket_of_before() -> None:
    async with running(served(), size=NARROW) as (app, _, pilot):
        await pilot.press("down", "3", "tab", "enter")  # 14:14 operator: mode
        await settled(pilot)
        assert looking_at(app) == (REPEAT, "15 min", NOW - 60)


async def test_a_change_of_a_workload_without_a_bucket_says_so() -> None:
    async with running(scenes.live(buckets=[]), size=NARROW) as (app, _, pilot):
        await pilot.press("3", "tab", "enter")
        assert "nothing of it was decoded" in list(app._notifications)[-1].message
        assert app.current_mode == "policy"


async def test_in_a_replay_a_change_is_gone_to_by_the_clock_itself() -> None:
    async with running(scenes.replayed(playing=False), size=NARROW) as (app, feed, pilot):
        await pilot.press("3", "tab", "enter")
        await until(pilot, lambda: acts(feed) == [{"act": "seek", "ts": NOW - 60}])
        assert looking_at(app)[2] is None


@pytest.mark.parametrize("alert", scenes.drifting()[:1])
async def test_from_the_alert_line_to_its_moment_in_its_bucket(alert: object) -> None:
    async with running(scenes.live(alerts=[alert]), size=NARROW) as (app, _, pilot):
        await pilot.click("#alerts")
        await settled(pilot)
        assert looking_at(app) == (CHAT, "15 min", NOW - 760)


async def test_an_alert_of_no_bucket_leads_to_the_alerts_and_no_alert_leads_nowhere() -> None:
    async with running(scenes.live(), scenes.alerting(), size=NARROW) as (app, _, pilot):
        await pilot.click("#alerts")
        await settled(pilot)
        assert app.current_mode == "alerts"
    async with running(scenes.live(), size=NARROW) as (app, _, pilot):
        await pilot.click("#alerts")
        assert app.current_mode == "live"


async def test_the_gravest_alert_is_two_keys_away() -> None:
    async with running(scenes.live(alerts=scenes.drifting()), size=NARROW) as (app, feed, pilot):
        feed.alerts = [one for one in scenes.alert_history() if one.id == 7]
        await pilot.press("4")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert looking_at(app) == (CHAT, "15 min", NOW - 760)


def test_the_bucket_that_a_change_concerns() -> None:
    small = scenes.bucket(scenes.key("code", "2048-8192"), 0.5, 1.0, 3)
    picture = Picture(Link("connected", NOW), NOW, scenes.live(buckets=[small, *scenes.four_workloads()]))
    assert bucket_of(picture, "code", None) == CODE, "the one that emits most"
    assert bucket_of(picture, "code", small.key) == small.key, "unless one of it was looked at"
    assert bucket_of(picture, "code", CHAT) == CODE
    assert bucket_of(picture, None, CHAT) == CHAT
    assert bucket_of(picture, "nobody", CHAT) is None
    assert bucket_of(Picture(Link("connected", NOW), NOW), None, None) is None
