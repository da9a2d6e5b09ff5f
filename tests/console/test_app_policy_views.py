"""The pure part of the Policy screen: the line that a schedule is edited as, its strip, words and widths."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.app.drawing.spans import text_of, width_of
from console.app.frame.statusline import status_line
from console.app.live.startup import before_buckets
from console.app.picture import Link, Picture
from console.app.policy.facts import policy_lines
from console.app.policy.history_rows import history_row
from console.app.policy.schedule_strip import stretches, strip_lines
from console.app.policy.schedule_text import parse_line
from console.app.policy.words import entry_words, mode_words, same_mode
from console.app.policy.workload_rows import workload_row, workload_state
from console.feed.messages import CalibrationView
from console.feed.protocol import HistoryEntry
from engine.policy import base_k
from engine.records import PolicyMode
from engine.schedule import DraftSchedule, Range, ScheduleError
from engine.schedule_file import to_json, to_line
from tests.console import scenes

GAPS = PolicyMode(mode="schedule", schedule=[(1, 1, 2), (3, 4, 2), (5, 5, 0), (6, 9, 1)])


@st.composite
def schedules(draw: st.DrawFn) -> DraftSchedule:
    ranges: list[Range] = []
    first = 1
    for _ in range(draw(st.integers(min_value=1, max_value=6))):
        last = first + draw(st.integers(min_value=0, max_value=300))
        ranges.append(Range(first, last, draw(st.integers(min_value=0, max_value=12))))
        first = last + 1 + draw(st.integers(min_value=0, max_value=20))
    return tuple(ranges)


@given(schedules())
def test_what_the_editor_shows_it_reads_as_the_same_schedule(schedule: DraftSchedule) -> None:
    assert parse_line(to_line(schedule), 32) == schedule
    assert parse_line(to_json(schedule), 32) == schedule


@given(st.one_of(st.text(), st.text(alphabet="0123456789-–─:=,.[]{} kK+")))
def test_any_text_is_a_schedule_or_a_complaint(text: str) -> None:
    with suppress(ScheduleError):
        schedule = parse_line(text, 32)
        assert parse_line(to_line(schedule), 32) == schedule


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("1-4: 4, 5-12: 1, 13-: 0", [(1, 4, 4), (5, 12, 1), (13, 32, 0)]),
        (" 1–4=4 ,5──12 : K 1,40-: k0 ", [(1, 4, 4), (5, 12, 1), (40, 40, 0)]),
        ("1: 3", [(1, 1, 3)]),
    ],
    ids=["open", "loose", "one"],
)
def test_the_line_may_be_written_as_the_strip_is_read(text: str, schedule: list[tuple[int, int, int]]) -> None:
    assert list(parse_line(text, 32)) == schedule


@given(schedules(), st.integers(min_value=1, max_value=2000), st.integers(min_value=0, max_value=8))
def test_the_strip_gives_the_k_of_every_batch_size(schedule: DraftSchedule, running: int, max_k: int) -> None:
    mode = PolicyMode(mode="schedule", schedule=list(schedule))
    held = [one for one in stretches(mode, max_k) if one.first <= running <= (one.last or running)]
    assert [one.k for one in held] == [min(max_k, base_k(mode, running, max_k))]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (scenes.SCHEDULE, "1──4: K 4 │ 5──12: K 1 │ 13──: 0"),
        (PolicyMode(mode="off"), "1──: 0"),
        (PolicyMode(mode="static", k=9), "1──: K 4"),
        (PolicyMode(mode="adaptive", act=True), "1──: K ≤4"),
        (PolicyMode(mode="adaptive", act=False), "1──: K 4"),
        (GAPS, "1──4: K 2 │ 5: 0 │ 6──: K 1"),
    ],
    ids=["schedule", "off", "static", "adaptive", "advise", "gaps"],
)  # fmt: skip
def test_a_mode_as_a_strip(mode: PolicyMode, text: str) -> None:
    assert [text_of(line) for line in strip_lines(mode, 4, 7, 100)] == [text]


def test_the_range_that_is_running_now_is_bright_and_a_long_strip_breaks() -> None:
    (line,) = strip_lines(scenes.SCHEDULE, 4, 7, 100)
    assert [text for text, role in line if role == "bright"] == ["5──12: ", "K 1"]
    assert [text_of(part) for part in strip_lines(scenes.SCHEDULE, 4, 7, 24)] == ["1──4: K 4 │ 5──12: K 1", "13──: 0"]


def test_modes_are_the_same_whatever_reason_stands_beside_them() -> None:
    advise = PolicyMode(mode="adaptive", act=False)
    assert same_mode(PolicyMode(mode="static", k=4, reason="clamped"), scenes.STATIC_4)
    assert same_mode(PolicyMode(mode="adaptive"), PolicyMode(mode="adaptive", act=True))
    assert not same_mode(advise, PolicyMode(mode="adaptive"))
    assert not same_mode(advise, PolicyMode(mode="adaptive", act=False, schedule=scenes.SCHEDULE.schedule))
    assert mode_words(advise) == "advise"


@pytest.mark.parametrize(
    ("workload", "fields", "words"),
    [
        (None, {"cap": None}, "no cap"),
        (None, {"fallback": True}, "fallback for all: K 0 everywhere"),
        (None, {"mode": "schedule", "schedule": [[1, 4, 2]]}, "schedule 1-4: 2"),
        ("chat", {"k": 2, "fallback": True}, "chat: speculative lane, K 2, in fallback"),
        (None, {"mode": "of another version"}, '{"mode":"of another version"}'),
        (None, None, "—"),
    ],
    ids=["cap", "fallback", "mode", "workload", "strange", "none"],
)
def test_both_sides_of_a_recorded_change_have_words(
    workload: str | None, fields: dict[str, object], words: str
) -> None:
    entry = HistoryEntry(ts=scenes.NOW, actor="operator", action="mode", workload=workload)
    assert entry_words(entry, fields) == words


@pytest.mark.parametrize("width", [60, 80, 116, 200])
def test_every_line_of_the_policy_screen_fits(width: int) -> None:
    for scene in (scenes.calm(), scenes.troubled(), scenes.observed(), scenes.no_bucket(), scenes.starting(), None):
        picture = Picture(Link("connected", scenes.NOW - 60), scenes.NOW, snapshot=scene)
        assert all(width_of(line) <= width for line in policy_lines(picture, width, False))
        assert width_of(status_line(picture, width)) == width
        if scene is not None:
            rows = [workload_row(view, scene, width) for view in scene.workloads]
            assert all(width_of(row) < width or width < 80 for row in rows)


def test_what_holds_a_workload_is_named_the_strongest_first() -> None:
    _, repeat, chat, creative, _ = scenes.fallen_workloads()
    scene = scenes.troubled()
    assert workload_state(creative, scene)[1] == "fallback since 4 min, next try in 0:32"
    assert workload_state(creative, scenes.live(fallback=True))[1] == "fallback for all"
    assert workload_state(repeat, scenes.live(fallback=True))[1] == "vanilla lane"
    assert workload_state(repeat, scenes.live(policy=PolicyMode(mode="off")))[1] == "mode off"
    assert "would do: K 1 → 2" in text_of(workload_row(chat, scene, 80))


def test_an_engine_without_speculation_does_not_stand_for_a_lower_k() -> None:
    vanilla = scenes.engine(engine="v0", max_k=0, configured=PolicyMode(mode="off"), executed_k=0)
    picture = Picture(Link("connected", scenes.NOW), scenes.NOW, scenes.live(engines=[scenes.engine(), vanilla]))
    assert "static:4  K 4  run" in text_of(status_line(picture, 120))


def test_only_a_change_that_can_be_undone_offers_it() -> None:
    newest, k, _ = scenes.history()
    assert text_of(history_row(newest)).startswith("u 14:14 operator")
    assert " u " not in text_of(history_row(k))


def test_while_an_engine_is_calibrated_the_live_screen_says_so() -> None:
    busy = CalibrationView(engine="e0", state="running", text="batch 8 of 32, 21 s")
    snapshot = msgspec.structs.replace(scenes.no_bucket(), calibration=busy)
    shown = "\n".join(map(text_of, before_buckets(Picture(Link("connected", scenes.NOW), scenes.NOW, snapshot), 80)))
    assert "calibrating: batch 8 of 32, 21 s" in shown
