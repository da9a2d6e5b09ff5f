"""The Bucket screen: what is drawn at any size, what its keys do, and what it says where it knows nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from console.app.bucket.facts import SPANS, BucketFacts
from console.app.bucket.readout import alpha_readout, mark_line, speedup_readout, why_no_speedup
from console.app.bucket.screen import BucketScreen
from console.app.bucket.side import position_lines, side, worst_lines
from console.app.bucket.speedup_by_k import k_table, shown_ks
from console.app.bucket.timeline import timeline
from console.app.drawing import numbers, plots
from console.app.drawing.spans import Line, text_of, width_of
from console.app.live.screen import LiveScreen
from console.app.policy.screen import PolicyScreen
from console.feed.bucket_detail import Level, MeasuredK
from console.feed.client import FeedError
from console.feed.messages import Event
from store.figures import BucketKey
from tests.console import scenes
from tests.console.driving import NARROW, running, settled, text_on, until

CHAT = scenes.key("chat", "0-512", "(0,0.5]")
NOW = scenes.NOW


def facts(key: BucketKey = CHAT, **changes: Any) -> BucketFacts:
    span = SPANS[0]
    values: dict[str, Any] = {
        "key": key, "bucket": scenes.bucket(key, 0.38, 30.8, 97), "span": span, "engine": scenes.engine(),
        "series": scenes.series(key, span.points, span.seconds), "detail": scenes.bucket_detail(key),
        "alerts": (scenes.drifting()[0],),
    }  # fmt: skip
    return BucketFacts(**(values | changes))


def said(lines: list[Line]) -> str:
    return "\n".join(text_of(line) for line in lines)


HOSTILE = scenes.key(f"{scenes.HOSTILE}\x1b[2J\u202e")


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 220), st.integers(1, 60), st.sampled_from([None, NOW, NOW - 400.0, NOW - 1e6]), st.booleans(),
    st.sampled_from([None, "few", "nothing"]),
)  # fmt: skip
def test_it_fits_any_size_whatever_a_tag_holds(
    width: int, height: int, at: float | None, detailed: bool, state: str | None
) -> None:
    bad = Event(NOW - 100, "control", f"{scenes.HOSTILE} \x1b[31m" * 20)
    series = scenes.series(HOSTILE, 30, 900.0)
    if state == "few":
        series = scenes.few_series(HOSTILE, 30, 900.0)
    shown = facts(
        HOSTILE, at=at, series=None if state == "nothing" else replace(series, marks=[*series.marks, bad]),
        detail=scenes.bucket_detail(HOSTILE) if detailed else None, trouble="\x1b[2J" if state == "nothing" else "",
    )  # fmt: skip
    for lines in (timeline(shown, width, height), side(shown, width, height)):
        assert len(lines) <= height
        for line in lines:
            assert width_of(line) <= width
            assert not any(ord(char) < 32 for char in text_of(line))


def test_the_read_out_says_value_interval_and_n_of_its_moment_and_both_speedups_by_name() -> None:
    shown = facts(at=NOW - 75)
    point = shown.point
    assert point is not None
    assert abs(point.ts - (NOW - 60)) < 1e-6
    assert text_of(alpha_readout(shown)).startswith(f"α {numbers.fraction(point.alpha)}  ")
    assert f"n {point.sequences}" in text_of(alpha_readout(shown))
    words = text_of(speedup_readout(shown))
    assert "━ experienced" in words
    assert "◇ marginal" in words


def test_what_is_missing_is_a_dash_with_the_reason() -> None:
    begun = facts(series=scenes.few_series(CHAT, 30, 900.0), detail=scenes.few_detail(CHAT), alerts=())
    assert "n 1 few" in text_of(alpha_readout(begun))
    assert text_of(speedup_readout(begun)).count(numbers.ABSENT) == 2
    assert "needs measured vanilla times" in why_no_speedup(begun)
    assert "the controller has none yet" in why_no_speedup(begun)
    assert "step times not measured yet" in said(k_table(begun, 60))
    assert "no recent sequence" in said(worst_lines(begun, 60))
    assert "the controller has none yet" in said(timeline(begun, 100, 14))
    undrafted = facts(bucket=scenes.bucket(CHAT, None, 1.0))
    assert "nothing was drafted" in said(position_lines(undrafted, 60))
    empty = facts(series=replace(scenes.series(CHAT), points=[]))
    assert "No row of this bucket in the last 15 min" in said(timeline(empty, 80, 30))


def test_a_bucket_that_has_just_begun_stands_at_the_right_of_the_whole_window() -> None:
    begun = facts(series=scenes.few_series(CHAT, 30, 900.0), alerts=())
    assert len(begun.points) == 30
    assert begun.start == pytest.approx(NOW - 900)
    assert [point.alpha is not None for point in begun.points] == [False] * 27 + [True] * 3
    k_row = next(line for line in said(timeline(begun, 80, 14)).splitlines() if line.startswith("K "))
    assert k_row.rstrip().endswith("▄")
    assert k_row[12:60].strip() == ""


def test_a_curve_breaks_where_nothing_was_measured_and_joins_the_rest() -> None:
    joined = plots.spread([0.0, 1.0, None, 3.0], 16)
    assert joined[8:12] == [None] * 4
    assert joined[:4] == pytest.approx([0, 0, 0.125, 0.375])
    assert joined[12:] == [3.0] * 4


def test_the_baseline_is_drawn_only_where_its_depth_is_what_is_drafted() -> None:
    assert "baseline 7 d .47" in said(timeline(facts(), 90, 30))
    shallow = replace(scenes.bucket_detail(CHAT), level=Level(depth=1, baseline=0.47, baseline_sequences=9))
    assert "baseline" not in said(timeline(facts(detail=shallow), 90, 30))
    assert "depth 1: 7 d .47 (n 9); K varies" in said(side(facts(detail=shallow), 120, 30))


def test_marks_stand_in_the_gutter_and_only_those_that_bear_on_the_bucket() -> None:
    started = Event(NOW - 300, "engine", "e0 announced itself: another drafter")
    noise = Event(NOW - 200, "station", "station s1 started")
    series = scenes.series(CHAT, 30, 900.0)
    shown = facts(series=replace(series, marks=[*series.marks, started, noise]))
    assert [mark.kind for mark in shown.marks] == ["alert", "gap", "control", "version"]
    gutter = next(line for line in said(timeline(shown, 100, 30)).splitlines() if line.startswith("marks"))
    assert gutter.split() == ["marks", "▲", "░", "c", "v"]
    there = facts(at=NOW - 450)
    assert "c " in text_of(mark_line(there, 80))
    assert "static:4 → static:2" in text_of(mark_line(there, 80))


def test_the_ks_with_most_rows_stay_where_there_is_little_room() -> None:
    many = [MeasuredK(k, 1.0, None, None, "ok", 100 if k in (3, 9) else 1, 4.0) for k in range(12)]
    detail = replace(scenes.bucket_detail(CHAT), measured=many, theory=[1.0] * 13)
    assert shown_ks(detail, 20) == list(range(13))
    assert {3, 9, 12} <= set(shown_ks(detail, 5))


def test_last_rows_say_accepted_of_drafted_and_the_limit_where_it_changes() -> None:
    lines = said(worst_lines(facts(), 120)).splitlines()
    assert lines[2].split() == [
        "schedule", "0/4", "1/4", "0/4", "1/4", "0/4", "1/4", "0/4", "1/4", "cap", "0/2", "1/2", "0/2", "1/2",
    ]  # fmt: skip
    assert lines[4].split()[0] == "schedule"


def on(app: Any) -> BucketScreen:
    assert isinstance(app.screen, BucketScreen)
    return app.screen


async def test_two_opens_the_bucket_under_the_cursor_and_esc_goes_back_to_where_it_was_left() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("down", "down", "2")
        await settled(pilot)
        assert on(app).key == CHAT
        assert "chat 0-512" in text_on(app)
        asked = feed.actions("series")[-1]
        assert (asked["seconds"], asked["points"], asked["detail"]) == (900.0, 30, True)
        await pilot.press("up")
        await settled(pilot)
        assert on(app).key == scenes.key("repeat", "512-2048")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert isinstance(app.screen, LiveScreen)
        assert app.screen.table.cursor == scenes.key("repeat", "512-2048")


async def test_the_cursor_goes_through_points_and_marks_and_stays_at_its_moment_in_another_window() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await pilot.press("2")
        await settled(pilot)
        await pilot.press("left", "left", "right")
        assert on(app).looking_at[2] == NOW - 45
        await pilot.press("tab")
        assert "░" in app.screen.query_one("#timeline").text.splitlines()[-1]
        at = on(app).looking_at[2]
        await pilot.press("right_square_bracket")
        await settled(pilot)
        assert on(app).looking_at[1:] == ("1 h", at)
        await pilot.press("right_square_bracket", "right_square_bracket")
        await settled(pilot)
        assert any("6 h is the longest" in note.message for note in app._notifications)
        await pilot.press("end")
        assert on(app).looking_at[1:] == ("6 h", None)


async def test_enter_on_a_control_mark_goes_to_its_line_of_the_history_and_else_explains() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await pilot.press("2")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "Acceptance rate α" in text_on(app)
        await pilot.press("escape", "tab", "tab", "enter")
        nearest = scenes.history()[1]
        await until(pilot, lambda: isinstance(app.screen, PolicyScreen) and app.screen.marked_change == nearest)


async def test_an_alert_longer_ago_opens_a_longer_window_and_one_too_long_ago_is_said() -> None:
    async with running(scenes.live(alerts=scenes.drifting()), size=(200, 50)) as (app, _, pilot):
        await pilot.press("4")
        await settled(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, BucketScreen))
        assert on(app).looking_at[1:] == ("1 h", NOW - 2400)
        await pilot.press("4", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, BucketScreen))
        assert on(app).looking_at[1:] == ("6 h", None)
        assert any("more than 6 h ago" in note.message for note in app._notifications)


async def test_paused_another_bucket_is_still_read_and_then_stands_still() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("2", "p", "down")
        await settled(pilot)
        assert "experienced 1.42" in app.screen.query_one("#timeline").text
        asked = len(feed.actions("series"))
        on(app)._look()
        await pilot.pause()
        assert len(feed.actions("series")) == asked


async def test_what_the_station_refuses_is_said_where_the_charts_would_be() -> None:
    async with running(scenes.live(), size=NARROW) as (app, feed, pilot):
        feed.no_series = FeedError("refused", "the store is being moved")
        await pilot.press("2")
        await settled(pilot)
        assert "the store is being moved" in text_on(app)


async def test_a_slow_answer_is_waited_for_while_a_replay_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each picture of a replay makes everything due again: asking anew would drop every answer before it came."""
    answer, begun = asyncio.Event(), 0
    async with running(scenes.replayed(), intent="replay") as (app, feed, pilot):
        plain = feed.request

        async def slow(method: Any, *rest: Any) -> Any:
            nonlocal begun
            if method == "series" and rest[0].detail:
                begun += 1
                await answer.wait()
            return await plain(method, *rest)

        monkeypatch.setattr(feed, "request", slow)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, BucketScreen))
        screen = app.screen
        assert isinstance(screen, BucketScreen)
        for number in range(2, 6):
            feed.say(scenes.replayed(NOW + number, number))
            await until(pilot, lambda: feed.taken_in)
            screen._look()
            await pilot.pause()
        assert begun == 1
        answer.set()
        await until(pilot, lambda: bool(feed.actions("bucket_detail")) and screen.has_answers)
