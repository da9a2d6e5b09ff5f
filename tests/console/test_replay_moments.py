"""Moments of a replay as they are typed, and where the time bar draws them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.app.drawing.spans import text_of, width_of
from console.app.replay.clock import SPEEDS, next_speed
from console.app.replay.moment import MomentError, read_moment, resolve
from console.app.replay.time_bar import bar_lines, make_bar
from console.feed.messages import ReplayView
from tests.console import scenes

START, END, NOW = scenes.START, scenes.END, scenes.NOW
DAY = 86_400.0


pytestmark = pytest.mark.usefixtures("in_utc")


@pytest.mark.parametrize(
    ("text", "ts"),
    [
        ("14:05", START + 300),
        (" 14:05:30.5 ", START + 330.5),
        ("2026-09-21 14:05", START + 300),
        ("+1h", END),
        ("-1h", START),
        ("90s", START + 90),
        ("2m 30s", START + 150),
        ("0%", START),
        ("100 %", END),
    ],
)
def test_what_is_typed_means_a_moment(text: str, ts: float) -> None:
    assert resolve(read_moment(text), START, END, NOW) == pytest.approx(ts)


def test_a_time_of_day_is_the_nearest_one_of_a_trace_of_days() -> None:
    start, end = START - 3 * DAY, END
    assert resolve(read_moment("14:05"), start, end, START - DAY) == START + 300 - DAY
    assert resolve(read_moment("23:00"), start, end, NOW) == START + 9 * 3600 - DAY


def test_the_minute_in_which_a_trace_begins_is_its_beginning() -> None:
    assert resolve(read_moment("14:00"), START + 3, END, NOW) == START + 3


@pytest.mark.parametrize("text", ["", "25:00", "14:60", "101%", "+", "-3", "2026-13-01 14:05", "14:05 %", "٣%"])
def test_what_means_no_moment_is_answered_with_the_forms_that_do(text: str) -> None:
    with pytest.raises(MomentError, match="14:05:30"):
        read_moment(text)


@pytest.mark.parametrize("text", ["13:59", "14:41", "2026-09-20 14:05", "0001-01-01 00:00", "9999-12-31 23:59"])
def test_a_moment_outside_the_trace_names_what_there_is(text: str) -> None:
    with pytest.raises(MomentError, match="14:00:00 – 14:40:00 on 21 Sep"):
        resolve(read_moment(text), START, END, NOW)


@given(st.text(max_size=20) | st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9])?(h|m|s|%|:[0-9]{2})", fullmatch=True))
def test_whatever_is_typed_is_a_moment_of_the_trace_or_an_error(text: str) -> None:
    try:
        ts = resolve(read_moment(text), START, END, NOW)
    except MomentError:
        return
    assert START <= ts <= END


@given(
    st.integers(1, 220),
    st.floats(-10, 3000),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from([None, (START, END), (START + 700, START + 701)]),
    st.floats(0, 90_000),
)
def test_the_bar_fills_its_width_and_a_click_on_a_cell_gives_a_moment_in_it(
    width: int, since: float, share: float, complete: bool, loop: tuple[float, float] | None, span: float
) -> None:
    view = scenes.replay_view(end=START + span, loaded_share=share, complete=complete, loop=loop)
    bar = make_bar(view, START + since, None, width, NOW)
    for line in bar_lines(bar, width, 2):
        assert width_of(line) <= width
    if width >= 60:
        assert width_of(bar_lines(bar, width, 1)[0]) == width
    for column in range(width):
        ts = bar.moment_at(column)
        if ts is not None and bar.loaded > 1 and span > 1e-3:
            assert view.start <= ts <= view.end
            assert abs(bar.place(ts) - (column - bar.first)) <= 1


def first_line(view: ReplayView, width: int = 80, ts: float = NOW, today: float = NOW) -> str:
    return text_of(bar_lines(make_bar(view, ts, None, width, today), width, 1)[0])


def test_the_track_does_not_move_with_the_speed_or_the_step() -> None:
    bars = [
        make_bar(scenes.replay_view(speed=speed, playing=playing, position=position), NOW, None, 120, NOW)
        for speed in SPEEDS
        for playing in (True, False)
        for position in ("", "step 17 of e0", "step 17000000000 of engine-one")
    ]
    assert len({(bar.first, bar.cells) for bar in bars}) == 1


def test_what_is_not_read_yet_looks_unlike_what_is() -> None:
    line = first_line(scenes.replay_view(complete=False, loaded_share=0.5, end=NOW + 60, marks=[]))
    assert "reading  50 %" in line
    assert line.index("●") < line.index("┈")


@pytest.mark.parametrize(
    ("today", "start"), [(NOW, " 14:00 "), (NOW + DAY, " 21 Sep 14:00 "), (NOW + 365 * DAY, " 21 Sep 14:00 ")]
)
def test_another_day_than_today_is_named(today: float, start: str) -> None:
    assert first_line(scenes.replay_view(), today=today).startswith(start)


def test_a_short_trace_is_told_to_the_second() -> None:
    assert " 14:00:00 " in first_line(scenes.replay_view(end=START + 100))


def test_speeds_climb_one_by_one_and_a_speed_between_two_goes_to_the_next() -> None:
    climbed = [SPEEDS[0]]
    while climbed[-1] is not None:
        climbed.append(next_speed(climbed[-1], 1))
    assert tuple(climbed) == SPEEDS
    assert (next_speed(7.0, 1), next_speed(7.0, -1)) == (10.0, 5.0)
    assert (next_speed(None, -1), next_speed(0.1, -1)) == (1000.0, 0.1)
