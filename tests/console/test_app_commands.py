"""The command log: what was asked from here and by others, how it went, and the command that does the same."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from console.app.commands.log import CommandLog, LoggedFeed
from console.app.commands.page import CommandLogPage
from console.app.commands.rows import log_lines, log_rows
from console.app.commands.words import command_of, command_of_entry
from console.app.drawing.line_view import LineView
from console.app.drawing.spans import text_of, width_of
from console.cli.root import root
from console.feed.client import FeedError
from console.feed.protocol import AlertAct, DemoStart, ExportParams, HistoryEntry, PolicyConfirm, PolicySet, PolicyUndo
from console.feed.traces import RecordingBegin, RecordingEnd
from engine.records import PolicyMode
from tests.console import scenes
from tests.console.driving import running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed

ME = "ada@pts/3"
NOW = scenes.NOW


def entry(ts: float, actor: str = "bob@pts/9", action: str = "cap", **more: Any) -> HistoryEntry:
    text = more.pop("text", f"14:00 {actor}: {action}")
    return HistoryEntry(ts=NOW + ts, actor=actor, action=action, text=text, **more)


def flat(lines: list[Any]) -> str:
    return " ".join(" ".join(text_of(line) for line in lines).split())


async def test_at_lists_what_was_asked_here_and_by_others_newest_last_with_its_command() -> None:
    async with running(scenes.calm(), actor=ME) as (app, feed, pilot):
        feed.history = [
            entry(5, action="mode", after={"mode": "static", "k": 2}, policy=9, text="14:15 bob@pts/9: mode static:2"),
            entry(4, ME, text="what this console asked for itself"),
            entry(3, "adaptive", "k"), entry(-900, ME, text=f"14:00 {ME}: of an earlier console"),
        ]  # fmt: skip
        await pilot.press("minus")
        await until(pilot, lambda: bool(feed.actions("policy_set")))
        feed.refusal = FeedError("refused", "the policy is at version 5 by now")
        await pilot.press("f", "y")
        await until(pilot, lambda: len(feed.actions("policy_set")) == 2)
        await pilot.press("at")
        await settled(pilot)
        await until(pilot, lambda: "mode static:2" in text_on(app))
        text = " ".join(app.screen.query_one(LineView).text.split())
        parts = (
            "ada@pts/3 (this console) ✓ done of an earlier console",
            "✓ done, policy 4 cap 3 $ specdeck policy set --cap 3",
            "✗ refused fallback for all: K 0 everywhere the policy is at version 5 by now",
            "$ specdeck policy set --fallback on",
            "bob@pts/9 ✓ done, policy 9 mode static:2 $ specdeck policy set static:2",
        )
        places = [text.find(part) for part in parts]
        assert -1 not in places, text
        assert places == sorted(places)
        assert "asked for itself" not in text
        assert "adaptive: k" not in text
        await pilot.press("y")
        assert "specdeck policy set --cap 3" in app.clipboard


async def test_the_page_follows_what_others_do_and_says_what_cannot_be_read() -> None:
    async with running(scenes.calm(), actor=ME) as (app, feed, pilot):
        feed.history = []
        await pilot.press("at")
        await until(pilot, lambda: "Nothing was asked" in text_on(app))
        feed.history = [entry(1, text="14:15 bob@pts/9: cap none → 2", after={"cap": 2})]
        feed.say(replace(scenes.calm(), number=2, policy_version=8))
        await until(pilot, lambda: "specdeck policy set --cap 2" in text_on(app))
        feed.no_history = FeedError("unknown_method", "no method policy_history")
        feed.say(replace(scenes.calm(), number=3, policy_version=9))
        await until(pilot, lambda: "can't be read: no method policy_history" in text_on(app))
        assert isinstance(app.screen, CommandLogPage)
        await pilot.press("escape")
        assert not isinstance(app.screen, CommandLogPage)


def test_what_was_taken_back_says_by_whom() -> None:
    entries = [
        entry(9, "station", "revert", policy=7, why="not confirmed within 5 min"),
        entry(8, policy=6, numbers={"confirm_by": NOW + 300}),
        entry(7, "ada@pts/1", "undo", policy=5, numbers={"undone": 4}),
        entry(6, policy=4),
    ]
    taken = {row.policy: row.taken_back for row in log_rows([], entries, ME, NOW)}
    assert taken == {
        4: "by ada@pts/1, policy 5", 5: "", 6: "by the station, policy 7: not confirmed within 5 min", 7: "",
    }  # fmt: skip


@pytest.mark.parametrize("width", [30, 74])
def test_lines_fit_and_hold_no_escape_whatever_a_name_holds(width: int) -> None:
    hostile = "\x1b]0;x\x07\n" * 9 + "w" * 200
    entries = [entry(1, hostile[:64], "lane", workload=hostile, after={"lane": "vanilla"}, policy=3, why=hostile)]
    lines = log_lines(log_rows([], entries, ME, NOW), ME, NOW + 90_000, width, hostile)
    assert all("\x1b" not in text_of(line) and "\n" not in text_of(line) for line in lines)
    assert all(width_of(line) <= max(width, 110) for line in lines)


# The commands


_modes = st.one_of(
    st.just(PolicyMode(mode="off")),
    st.integers(0, 9).map(lambda k: PolicyMode(mode="static", k=k)),
    st.booleans().map(lambda act: PolicyMode(mode="adaptive", act=act)),
    st.booleans().map(lambda act: PolicyMode(mode="adaptive", schedule=[(1, 4, 2)], act=act)),
    st.just(PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)])),
)
_tags = st.text(min_size=1, max_size=9).filter(lambda tag: tag.strip() == tag and "=" not in tag and "\0" not in tag)
_sets = st.builds(
    PolicySet, policy=st.none() | _modes, fallback=st.none() | st.booleans(), cap=st.none() | st.integers(0, 9),
    lanes=st.dictionaries(_tags, st.sampled_from(["vanilla", "speculative"]), max_size=2),
    confirm=st.none() | st.sampled_from([30.0, 300.0]), why=st.none() | st.text(min_size=1, max_size=9),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(params=_sets)
def test_the_command_means_what_was_asked(params: PolicySet) -> None:
    sent: list[Any] = []
    command = command_of("policy_set", params)
    assert command is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("console.cli.policy_acts.act", lambda method, params, as_json: sent.append(params))
        result = CliRunner().invoke(root, shlex.split(command)[1:])
    assert result.exit_code == 0, (command, result.output)
    assert sent == [params]


@pytest.mark.parametrize(
    ("method", "params", "command"),
    [
        ("policy_undo", PolicyUndo(version=7), "specdeck policy undo 7"),
        (
            "recording_begin",
            RecordingBegin(path="/d/a b.jsonl", seconds=600.0),
            "specdeck trace record --detach --for 600s '/d/a b.jsonl'",
        ),
        ("recording_begin", RecordingBegin(path="/d/a.jsonl", replace=True), None),
        ("recording_end", RecordingEnd(id="1"), "specdeck trace end"),
        ("recording_end", RecordingEnd(path="/d/b.jsonl"), "specdeck trace end --into /d/b.jsonl"),
        ("policy_confirm", PolicyConfirm(version=7), "specdeck policy confirm 7"),
        ("alert_act", AlertAct(id=3, act="snooze"), "specdeck alerts --snooze 3 --for 3600s"),
        ("export", ExportParams(path="/tmp/a b.csv"), "specdeck export '/tmp/a b.csv'"),
        ("export", ExportParams(path="/tmp/a.csv", since=1.0), None),
        (
            "recording_begin",
            RecordingBegin(path="/tmp/a b.jsonl", seconds=60),
            "specdeck trace record --detach --for 60s '/tmp/a b.jsonl'",
        ),
        ("recording_end", RecordingEnd(path="/tmp/b.jsonl"), "specdeck trace end --into /tmp/b.jsonl"),
        ("stop", None, None),
    ],
)
def test_other_requests_have_theirs_where_there_is_one(method: Any, params: Any, command: str | None) -> None:
    assert command_of(method, params) == command


async def test_a_recording_and_demo_traffic_are_in_the_log_like_all_that_is_done() -> None:
    log = CommandLog(lambda: NOW)
    feed = LoggedFeed(MemoryFeed(), log)
    begin = RecordingBegin(path="/d/a.jsonl")
    for method, params in (
        ("recording_begin", begin), ("recording_end", RecordingEnd()), ("demo_start", DemoStart()), ("demo_stop", None),
    ):  # fmt: skip
        await feed.request(method, params, object)  # type: ignore[arg-type]
    said = ["record into /d/a.jsonl", "end the recording", "demo traffic for 180 s", "demo stop"]
    assert [(one.what, one.how) for one in log] == [(what, "done") for what in said]


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"action": "mode", "after": {"mode": "adaptive", "act": False}}, "specdeck policy set advise"),
        ({"action": "cap", "after": {"cap": None}}, "specdeck policy set --cap none"),
        ({"action": "lane", "workload": "a b", "after": {"lane": "vanilla", "k": 2}},
         "specdeck policy set --lane 'a b=vanilla'"),
        ({"action": "cap", "after": {"cap": 2}, "numbers": {"confirm_by": NOW + 301.2}},
         "specdeck policy set --cap 2 --confirm 300s"),
        ({"action": "undo", "numbers": {"undone": 4}}, "specdeck policy undo 4"),
        ({"action": "alert_acknowledge", "after": {"alert": 7}}, "specdeck alerts --acknowledge 7"),
        ({"action": "rehearsal_start", "after": {"plan": "short"}}, "specdeck rehearse short"),
        ({"action": "mode", "after": {"mode": "dance"}}, None),
        ({"action": "lane", "workload": "x", "after": {}}, None),
        ({"action": "recover", "workload": "x", "after": {"fallback": False}}, None),
        ({"action": "engine_restart", "after": {"engine": "e0"}}, None),
    ],
    ids=["mode", "cap", "lane", "raise", "undo", "alert", "rehearse", "foreign", "torn", "adaptive", "restart"],
)  # fmt: skip
def test_a_line_of_the_history_has_the_command_that_does_it(fields: dict[str, Any], command: str | None) -> None:
    assert command_of_entry(entry(1, **fields)) == command
