"""The Policy screen and the keys that change the policy: what they show, ask, send and refuse."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from console.app.application import SpecdeckApp
from console.app.drawing.line_view import LineView
from console.app.drawing.pick_list import PickList
from console.app.frame.dialogs import ConfirmDialog
from console.app.live.table import BucketTable
from console.app.policy.schedule_dialog import ScheduleDialog
from console.app.policy.screen import PolicyScreen
from console.feed.client import FeedError, Silence, Update
from console.feed.messages import Snapshot
from console.feed.protocol import HistoryEntry
from engine.records import PolicyMode
from tests.console import scenes
from tests.console.driving import LARGE, NARROW, running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed

CAPPED = replace(scenes.calm(), cap=2)
FALLEN = replace(scenes.calm(), fallback=True)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


def told(app: SpecdeckApp) -> str:
    return "\n".join(note.message for note in app._notifications)


def flat(app: SpecdeckApp) -> str:
    """What the screen or the dialog on top says, without line breaks, so that a wrapped sentence can be found."""
    views = [view.text for view in (*app.screen.query(LineView), *app.screen.query(PickList))]
    return " ".join(" ".join(views).split())


async def answered(pilot: Pilot[Any], feed: MemoryFeed, method: str, count: int = 1) -> list[Any]:
    await until(pilot, lambda: len(feed.actions(method)) >= count)
    return feed.actions(method)


# What it shows


async def test_the_three_columns_say_in_words_what_the_engine_took_back() -> None:
    async with running(scenes.troubled(), size=NARROW) as (app, _, pilot):
        await press(pilot, "3")
        shown = flat(app)
        assert "K above the engine's start-up maximum 3 is clamped" in shown
        assert "the engine took back an unconfirmed raise at" in shown
        assert "adaptive's own K is left out" in shown
        assert "reverts to static:2 in 4:31 unless confirmed: y" in shown
        assert "an engine of its own (v0), away: K = 0 instead" in shown
        assert "stale: the drafter is another one since then" in shown
        assert "fallback since 4 min, next try in 0:32" in shown
        assert "◔ 4:31" in shown.split("engine")[0], "the status line counts down too"


async def test_the_live_screen_marks_buckets_whose_workload_is_held() -> None:
    async with running(scenes.troubled(), size=NARROW) as (app, _, _):
        rows = app.screen.query_one(BucketTable).text.splitlines()
        (creative,) = (row for row in rows if "◆ creative" in row)
        (repeat,) = (row for row in rows if "⇥ repeat" in row)
        assert creative.rstrip().endswith("fallback 4m")
        assert repeat.rstrip().endswith("lane")


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (scenes.no_bucket(), ("No workload yet", "Nothing was changed yet", "`specdeck drill` makes one")),
        (scenes.observed(), ("does not tell workloads apart", "its policy is set where it was started")),
        (None, ("The policy shows here as soon as", "Workloads show here", "What was changed shows here")),
    ],
    ids=["idle", "observed", "silent"],
)
async def test_what_is_not_there_yet_says_how_it_comes(scene: Snapshot | None, words: tuple[str, ...]) -> None:
    async with running(*([scene] if scene is not None else []), size=NARROW) as (app, feed, pilot):
        feed.history = []
        await press(pilot, "3")
        for text in words:
            assert text in flat(app)


async def test_the_history_is_asked_for_again_when_the_policy_changes_and_only_then() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        assert not feed.actions("policy_history"), "nobody looks at it"
        await press(pilot, "3")
        feed.say(replace(scenes.calm(), number=2))
        await settled(pilot)
        assert len(feed.actions("policy_history")) == 1
        feed.history = [HistoryEntry(ts=scenes.NOW, actor="policy", action="k", text="adaptive: code K 4→2")]
        feed.say(replace(scenes.calm(), number=3, policy_version=4))
        await answered(pilot, feed, "policy_history", 2)
        await until(pilot, lambda: "adaptive: code K 4→2" in text_on(app))


async def test_a_station_that_cannot_tell_its_history_is_named_in_its_place() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        feed.no_history = FeedError("unknown_method", "no method policy_history")
        await press(pilot, "3")
        assert "The history can't be read: no method policy_history" in flat(app)


# Asking and sending


STATIC_2 = scenes.live(policy=PolicyMode(mode="static", k=2))
RAISED = "It is taken back in 5 min unless you press y on the Policy screen, or at once when tokens/s falls."


@pytest.mark.parametrize(
    ("scene", "keys", "words", "sent", "raises"),
    [
        (scenes.calm(), "f", ("after fallback for all: K 0 everywhere",), {"fallback": True}, False),
        (FALLEN, "f", ("after no fallback for all", "goes on as the mode says: schedule"), {"fallback": False}, True),
        (CAPPED, "plus", ("before cap 2 after cap 3",), {"cap": 3}, True),
        (replace(CAPPED, cap=3), "plus", ("before cap 3 after no cap",), {"cap": None}, True),
        (scenes.calm(), "3 l", ("code: vanilla lane", "K = 0 in the same"), {"lanes": {"code": "vanilla"}}, False),
        (scenes.troubled(), "3 l", ("to the vanilla engine", "is away"), {"lanes": {"code": "vanilla"}}, False),
        (scenes.troubled(), "down l", ("repeat: speculative lane",), {"lanes": {"repeat": "speculative"}}, True),
        (STATIC_2, "m up enter", ("before static:2 after static:1",), {"policy": {"mode": "static", "k": 1}}, False),
        (STATIC_2, "m down enter", ("before static:2 after static:3",), {"policy": {"mode": "static", "k": 3}}, True),
    ],
    ids=["fall", "rise", "cap", "uncap", "lane", "engine", "out", "less", "more"],
)
async def test_a_change_is_shown_and_sent_only_after_a_yes_and_a_raise_to_be_confirmed(
    scene: Snapshot, keys: str, words: tuple[str, ...], sent: dict[str, Any], raises: bool
) -> None:
    async with running(scene, size=NARROW) as (app, feed, pilot):
        await press(pilot, *keys.split())
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        for text in (*words, "undo"):
            assert text in flat(app)
        assert (RAISED in flat(app)) == raises
        await press(pilot, "enter")  # not a yes
        assert isinstance(app.screen, ConfirmDialog)
        assert not feed.actions("policy_set")
        await press(pilot, "y")
        (params,) = await answered(pilot, feed, "policy_set")
        assert {name: params[name] for name in sent} == sent
        assert (params["expect"], params["confirm"]) == (scene.policy_version, 300.0 if raises else None)
        await until(pilot, lambda: bool(told(app)))
        assert ("taken back in 5 min" in told(app)) == raises


async def test_the_cap_goes_down_at_once_step_by_step_and_says_how_to_undo() -> None:
    async with running(scenes.live(), size=NARROW) as (app, feed, pilot):
        await pilot.press("minus", "minus")
        await until(pilot, lambda: len(app._notifications) == 2)
        steps = feed.actions("policy_set")
        assert [(step["cap"], step["expect"]) for step in steps] == [(3, 3), (2, 4)], "no step waits for a snapshot"
        assert "cap 3 → cap 2, policy 5: u takes it back" in told(app)


@pytest.mark.parametrize(
    ("cap", "key", "word"), [(0, "minus", "0 already"), (None, "plus", "no cap")], ids=["bottom", "top"]
)
async def test_a_cap_that_cannot_move_says_so(cap: int | None, key: str, word: str) -> None:
    async with running(replace(scenes.calm(), cap=cap), size=NARROW) as (app, feed, pilot):
        await press(pilot, key)
        await until(pilot, lambda: word in told(app))
        assert not feed.actions("policy_set")


async def test_the_mode_dialog_keeps_the_schedule_as_a_bound_and_offers_the_last_one() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "m")
        assert app.screen.query_one(OptionList).option_count == 10
        await press(pilot, "down", "enter")  # from the schedule to adaptive within it
        assert "after adaptive within 1-4: 4, 5-12: 1, 13-32: 0" in flat(app)
        await press(pilot, "escape")
        feed.say(scenes.live(number=2))  # static by now, by somebody else
        await press(pilot, "m", "down", "enter", "y")
        (params,) = await answered(pilot, feed, "policy_set")
        assert msgspec.convert(params["policy"], PolicyMode) == scenes.SCHEDULE


async def test_u_undoes_the_newest_change_from_anywhere() -> None:
    async with running(scenes.live(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await settled(pilot)
        assert "before static:4 after static:2" in flat(app)
        await press(pilot, "y")
        assert await answered(pilot, feed, "policy_undo") == [{"version": 3, "expect": 3, "why": None}]
        await until(pilot, lambda: "undone: policy 4 sent" in told(app))


async def test_u_on_a_line_of_the_history_undoes_that_one() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3", "tab", "down")
        assert "(it can't be undone now)" in flat(app)
        await press(pilot, "u")
        await until(pilot, lambda: "can't be undone" in told(app))
        await press(pilot, "down", "u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await settled(pilot)
        assert "before cap 3 after no cap" in flat(app)
        await press(pilot, "y")
        assert (await answered(pilot, feed, "policy_undo"))[0]["version"] == 1


async def test_a_change_of_several_things_is_undone_whole() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        newest, _, cap = scenes.history()
        feed.history = [newest, replace(cap, policy=newest.policy)]
        await press(pilot, "u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await settled(pilot)
        assert "before static:4; cap 3 after static:2; no cap" in flat(app)


async def test_with_nothing_to_undo_nothing_is_asked() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        feed.history = []
        await press(pilot, "u")
        await until(pilot, lambda: "nothing to undo" in told(app))
        assert len(app.screen_stack) == 1


async def test_y_confirms_the_raise_that_was_seen() -> None:
    async with running(scenes.troubled(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3")
        assert "y confirm raise" in text_on(app)
        await press(pilot, "y")
        assert await answered(pilot, feed, "policy_confirm") == [{"version": 3}]
        await until(pilot, lambda: "confirmed" in told(app))


async def test_a_refusal_of_the_station_is_told() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        feed.refusal = FeedError("refused", "the policy is at version 5 by now, not 3: look again, then decide")
        await press(pilot, "f", "y")
        await until(pilot, lambda: "nothing was changed: the policy is at version 5" in told(app))


@pytest.mark.parametrize(
    ("updates", "options", "reason"),
    [
        ((scenes.troubled(),), {"read_only": True}, "read-only"),
        ((scenes.observed(),), {}, "only observes"),
        ((scenes.troubled(), Silence(scenes.NOW - 12, "no snapshot")), {}, "no connection to the station"),
        ((), {}, "no connection to the station"),
    ],
    ids=["reader", "observer", "lost", "silent"],
)
async def test_who_may_not_change_the_policy_is_told_why(
    updates: tuple[Update, ...], options: dict[str, Any], reason: str
) -> None:
    async with running(*updates, size=NARROW, **options) as (app, feed, pilot):
        await press(pilot, "3")
        keys = ["m", "f", "minus", "plus", "u", "l", "e", "y"]
        await press(pilot, *keys)
        assert [reason in note.message for note in app._notifications] == [True] * len(keys)
        assert len(app.screen_stack) == 1
        assert not {method for method, _ in feed.asked} & {"policy_set", "policy_undo", "policy_confirm"}
        assert "m mode" not in app.screen.query_one("#keys", LineView).text


# The cursor


async def test_the_cursor_goes_from_the_workloads_into_the_history_and_back() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, _, pilot):
        await press(pilot, "3")
        screen = app.screen
        assert isinstance(screen, PolicyScreen)
        await press(pilot, *["down"] * 4)
        assert screen.history.has_focus
        await press(pilot, "up")
        assert screen.workloads.has_focus
        assert screen.workloads.cursor == scenes.HOSTILE
        await press(pilot, "tab", "tab", "home")
        assert screen.workloads.cursor == "code"


async def test_the_cursor_stays_on_its_workload_when_others_come_before_it() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3", "down")
        first = replace(scenes.workloads()[0], name="a-new-one")
        feed.say(replace(scenes.calm(), workloads=[first, *scenes.workloads()]))
        await press(pilot, "l")
        assert "after repeat: vanilla lane" in flat(app)


async def test_a_hostile_workload_is_shown_and_sent_as_it_is() -> None:
    async with running(scenes.calm(), size=LARGE) as (app, feed, pilot):
        await press(pilot, "3", "end")
        assert scenes.HOSTILE in text_on(app)
        await press(pilot, "l", "y")
        assert (await answered(pilot, feed, "policy_set"))[0]["lanes"] == {scenes.HOSTILE: "vanilla"}


# The schedule editor


async def test_a_schedule_is_previewed_confirmed_and_sent() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3", "e")
        field = app.screen.query_one(Input)
        assert field.value == "1-4: 4, 5-12: 1, 13-32: 0"
        field.value = "1-2: 3, 3-8: 1, 9-: 6"
        await settled(pilot)
        assert "1──2: K 3 │ 3──8: K 1 │ 9──: K 4" in text_on(app)
        assert "clamped to K 4, the engine's maximum: 9-32: 6" in flat(app)
        await press(pilot, "enter")
        assert "after schedule 1-2: 3, 3-8: 1, 9-32: 6" in flat(app)
        await press(pilot, "y")
        (params,) = await answered(pilot, feed, "policy_set")
        sent = PolicyMode(mode="schedule", schedule=[(1, 2, 3), (3, 8, 1), (9, 32, 6)])
        assert msgspec.convert(params["policy"], PolicyMode) == sent
        assert params["confirm"] == 300.0, "batch 13 and more may draft by it"


async def test_in_mode_adaptive_the_schedule_is_its_bound() -> None:
    async with running(scenes.troubled(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3", "e")
        assert "It becomes the bound of mode adaptive." in flat(app)
        app.screen.query_one(Input).value = "[[1,32,1]]"
        await press(pilot, "enter", "y")
        (params,) = await answered(pilot, feed, "policy_set")
        sent = PolicyMode(mode="adaptive", schedule=[(1, 32, 1)], act=True)
        assert msgspec.convert(params["policy"], PolicyMode) == sent


COMPLAINTS = {
    "1-4: 4, 3-8: 1": "entry 2 ([3, 8, 1]): ranges must rise and not overlap",
    "2-4: 4": "entry 1 ([2, 4, 4]): the first range must start at batch size 1",
    "1-4: 4, 8-5: 1": "entry 2 ([8, 5, 1]): ends at 5, before it starts at 8",
    "1-4: 1.5": "entry 1 ([1, 4, '1.5']): '1.5' is no whole number",
    "1-4: -1": "entry 1 ([1, 4, -1]): K must be 0 or more",
    "1-4: 4, five": "entry 2 ('five'): write batch sizes and K",
    "[[1,4,true]]": "entry 1 ([1, 4, True]): True is no whole number",
    "[[1,4]]": "entry 1 ([1, 4]): must be [first, last, k]",
    "": "nothing is written yet",
}


async def test_a_schedule_that_cannot_be_meant_is_named_and_not_sent() -> None:
    async with running(scenes.calm(), size=NARROW) as (app, feed, pilot):
        await press(pilot, "3", "e")
        for text, complaint in COMPLAINTS.items():
            app.screen.query_one(Input).value = text
            await press(pilot, "enter")
            assert isinstance(app.screen, ScheduleDialog)
            assert complaint in flat(app)
        await press(pilot, "escape")
        assert len(app.screen_stack) == 1
        assert not feed.actions("policy_set")
