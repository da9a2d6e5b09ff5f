"""Pictures of what the recorded states of `test_app_pictures` don't have: dialogs, pages, rare rows and troubles.

Update with `pytest tests/console/test_app_snapshots.py --snapshot-update` and look at the SVG before committing it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from console.feed.client import Silence
from console.feed.messages import Snapshot
from tests.console import scenes
from tests.console.driving import LARGE, NARROW, WIDE, make_app, settled

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
ALL_SIZES = pytest.mark.parametrize("size", [NARROW, WIDE, LARGE], ids=["80x24", "120x36", "200x50"])
GONE = Silence(scenes.NOW - 12, "no snapshot from the station at /run/specdeck/snapshots")


pytestmark = pytest.mark.usefixtures("in_utc")


def after(*keys: str, theme: str | None = None) -> Callable[[Pilot[Any]], Any]:
    """What to do before the picture is taken."""

    async def run(pilot: Pilot[Any]) -> None:
        if theme is not None:
            pilot.app.theme = theme
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)

    return run


@SIZES
def test_live_shows_the_buckets(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=after())


@SIZES
def test_live_names_the_gravest_alert(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.alerting())
    assert snap_compare(app, terminal_size=size, run_before=after())


@SIZES
def test_engine_shows_versions_policy_and_log(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=after("7"))


def test_engine_says_why_executed_is_not_configured(snap_compare: Any) -> None:
    app, _ = make_app(scenes.mismatched())
    assert snap_compare(app, terminal_size=WIDE, run_before=after("7"))


@ALL_SIZES
@pytest.mark.parametrize("scene", [scenes.calm, scenes.troubled], ids=["calm", "troubled"])
def test_policy(snap_compare: Any, scene: Callable[[], Snapshot], size: tuple[int, int]) -> None:
    app, _ = make_app(scene())
    assert snap_compare(app, terminal_size=size, run_before=after("3"))


@ALL_SIZES
def test_bucket(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live(alerts=scenes.drifting()))
    assert snap_compare(app, terminal_size=size, run_before=after("down", "down", "2"))


def test_bucket_at_a_moment_in_the_light_theme(snap_compare: Any) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=WIDE, run_before=after("2", "tab", "tab", theme="specdeck-light"))


def test_bucket_that_has_just_begun(snap_compare: Any) -> None:
    app, feed = make_app(scenes.live())
    feed.few = True
    assert snap_compare(app, terminal_size=NARROW, run_before=after("2"))


@ALL_SIZES
def test_alerts(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live(alerts=scenes.drifting()))
    assert snap_compare(app, terminal_size=size, run_before=after("4"))


def test_schedule_editor_names_what_is_wrong(snap_compare: Any) -> None:
    app, _ = make_app(scenes.calm())
    assert snap_compare(app, terminal_size=NARROW, run_before=after("3", "e", *"0, 7"))


def test_a_raise_says_when_it_is_taken_back(snap_compare: Any) -> None:
    app, _ = make_app(scenes.troubled())
    assert snap_compare(app, terminal_size=NARROW, run_before=after("3", "plus"))


@SIZES
def test_help_lists_the_keys(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=after("question_mark"))


@SIZES
def test_mode_dialog_offers_off_and_each_k(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=after("m", "up", "up"))


@SIZES
def test_mode_confirmation_shows_before_and_after(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=after("m", "up", "up", "enter"))


@SIZES
def test_leave_dialog_says_what_each_way_out_means(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=after("q"))


def test_explanation_of_an_acceptance_rate(snap_compare: Any) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=WIDE, run_before=after("enter"))
