"""A replay in the console: what each key asks of it, what shows at once, and what is told of a moment that is past."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from console.app import actions
from console.app.application import SpecdeckApp
from console.app.frame.outcome import EndedError, Outcome
from console.app.replay.desk import Opening
from console.app.replay.moment import read_moment
from console.app.replay.time_bar_view import TimeBar
from console.feed.client import FeedError, Silence
from tests.console import scenes
from tests.console.driving import NARROW, WIDE, running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed

START, END, NOW = scenes.START, scenes.END, scenes.NOW


def acts(feed: MemoryFeed) -> list[dict[str, Any]]:
    """What was asked of the replay, without the fields that an act doesn't read."""
    read = {
        "step": ("count",),
        "seek": ("ts", "share"),
        "jump": ("kind", "count"),
        "speed": ("speed",),
        "loop": ("loop",),
    }
    return [
        {name: act[name] for name in ("act", *read.get(act["act"], ())) if act[name] is not None}
        for act in feed.actions("replay_act")
    ]


def bar(app: SpecdeckApp) -> str:
    return app.screen_stack[0].query_one(TimeBar).text


def palette(app: SpecdeckApp) -> set[str]:
    return {command.title for command in app.get_system_commands(app.screen)}


ACTS: dict[str, tuple[str, dict[str, Any]]] = {
    "play": ("space", {"act": "pause"}),
    "step_on": (".", {"act": "step", "count": 1}),
    "step_back": (",", {"act": "step", "count": -1}),
    "faster": (">", {"act": "speed", "speed": 100.0}),
    "slower": ("<", {"act": "speed", "speed": 50.0}),
    "next_alert": ("n", {"act": "jump", "kind": "alert", "count": 1}),
    "previous_version": ("V", {"act": "jump", "kind": "version", "count": -1}),
    "previous_alert": ("N", {"act": "jump", "kind": "alert", "count": -1}),
    "previous_control": ("C", {"act": "jump", "kind": "control", "count": -1}),
    "next_version": ("v", {"act": "jump", "kind": "version", "count": 1}),
    "next_control": ("c", {"act": "jump", "kind": "control", "count": 1}),
    "to_start": ("0", {"act": "seek", "share": 0.0}),
    "to_end": ("$", {"act": "seek", "share": 1.0}),
}
ASK_NOTHING_YET = {"go", "loop", "what_if"}
"""They open something, or mark a beginning: tests of their own."""


def test_no_key_of_a_replay_is_forgotten_here() -> None:
    assert {action.id for action in actions.in_context("replay")} == ACTS.keys() | ASK_NOTHING_YET


@pytest.mark.parametrize("screen", ["1", "3", "7"])
async def test_each_key_asks_for_its_act_on_any_screen(screen: str) -> None:
    async with running(scenes.replayed(), size=NARROW) as (_, feed, pilot):
        await pilot.press(screen)
        for number, (key, act) in enumerate(ACTS.values(), start=1):
            await pilot.press(key)
            await until(pilot, lambda number=number: len(acts(feed)) == number)  # type: ignore[misc]
            assert acts(feed)[-1] == act, key


async def test_without_a_replay_its_keys_are_no_keys() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("space", "n", "g", "o", "i", "0", "$")
        await settled(pilot)
        assert not feed.actions("replay_act")
        assert len(app.screen_stack) == 1
        assert not app._notifications
        assert "go to" not in text_on(app)
        assert "go to" not in palette(app)


async def test_the_bar_moves_before_the_replay_answers_and_stays_until_its_picture_is_there() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        assert "14:15:00" in bar(app)
        await pilot.press("n")  # to the alert at 14:33:20
        assert "14:33:20" in bar(app)
        feed.say(scenes.replayed(NOW + 1, 2))  # was under way
        await settled(pilot)
        assert "14:33:20" in bar(app)
        feed.say(scenes.replayed(START + 2000.0, 3, playing=False))
        await settled(pilot)
        assert app.picture.expected is None
        assert "here ▲ 14:33:20" in bar(app)


async def test_a_refused_act_puts_the_bar_back_and_says_why() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        feed.refusal = FeedError("refused", "the trace is read to 14:20 so far")
        await pilot.press("n")
        await until(pilot, lambda: app.picture.expected is None)
        assert "14:15:00" in bar(app)
        assert [note.message for note in app._notifications] == ["the trace is read to 14:20 so far"]


async def test_a_key_held_down_becomes_few_acts_and_none_is_lost() -> None:
    async with running(scenes.replayed(), size=NARROW) as (_, feed, pilot):
        await pilot.press(*["."] * 8)
        await until(pilot, lambda: sum(act["count"] for act in acts(feed)) == 8)


async def test_speeds_go_up_to_as_fast_as_it_goes_and_down_again() -> None:
    async with running(scenes.replayed(speed=100.0)) as (app, feed, pilot):
        await pilot.press(">", ">", ">", ">")
        await until(pilot, lambda: acts(feed)[-1] == {"act": "speed"})  # None: max
        assert "max" in bar(app)
        await pilot.press("<")
        await until(pilot, lambda: acts(feed)[-1] == {"act": "speed", "speed": 1000.0})
        assert "×1000" in bar(app)


async def test_a_jump_to_what_is_not_there_says_so_and_stays() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        await pilot.press("V")
        assert [note.message for note in app._notifications] == ["There is no change of version before this moment."]
        assert not acts(feed)


async def test_a_loop_is_begun_ended_and_given_up_with_one_key() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        await pilot.press("o")
        assert "loop from 14:15:00" in bar(app)
        await pilot.press("o")
        assert not acts(feed), "a loop of no length is none"
        await pilot.press("N", "o")  # back to the alert at 14:11:40
        looped = {"act": "loop", "loop": (START + 700, NOW)}
        await until(pilot, lambda: acts(feed)[-2:] == [looped, {"act": "play"}])  # the jump held it
        assert "loop 14:11:40 – 14:15:00" in bar(app)
        feed.say(scenes.replayed(NOW, 9, loop=(START + 700, NOW)))
        await settled(pilot)
        assert "end loop" in app.screen_stack[0].query_one("#keys").text or "o ends it" in bar(app)
        await pilot.press("o")
        await until(pilot, lambda: acts(feed)[-1] == {"act": "loop"})
        assert "[" not in bar(app).splitlines()[0]


async def test_a_click_on_the_track_goes_there() -> None:
    async with running(scenes.replayed(), size=NARROW) as (_, feed, pilot):
        await pilot.click(TimeBar, offset=(7, 0))  # the first cell of the track
        await until(pilot, lambda: len(acts(feed)) == 1)
        assert acts(feed) == [{"act": "seek", "ts": START}]
        await pilot.click(TimeBar, offset=(1, 0))
        await settled(pilot)
        assert len(acts(feed)) == 1


async def test_go_takes_a_time_an_offset_or_a_share() -> None:
    typed = {"14:05:30": START + 330, "+90s": START + 420, "40%": START + 960}
    async with running(scenes.replayed()) as (app, feed, pilot):
        for text in typed:
            await pilot.press("g")
            app.screen.query_one(Input).value = text
            await pilot.press("enter")
        await until(pilot, lambda: len(acts(feed)) == len(typed))
        assert [act["ts"] for act in acts(feed)] == pytest.approx(list(typed.values()))


async def test_go_stays_open_over_what_it_does_not_understand() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        await pilot.press("g")
        for text, said in {"soon": "understood: 14:05", "15:00": "not in this trace"}.items():
            app.screen.query_one(Input).value = text
            await pilot.press("enter")
            await settled(pilot)
            assert said in text_on(app)
            assert len(app.screen_stack) == 2
        await pilot.press("escape")
        assert not acts(feed)


async def test_what_changes_an_engine_is_off_and_says_why() -> None:
    keys = ("m", "f", "-", "+", "u", "l", "3", "e", "l", "k", "7", "r")
    async with running(scenes.replayed()) as (app, feed, pilot):
        for key in keys:
            app.clear_notifications()
            await pilot.press(key)
            await settled(pilot)
            assert len(app.screen_stack) == 1
            assert key.isdigit() or any("changes no engine" in note.message for note in app._notifications), key
            assert "mode" not in app.screen.query_one("#keys").text
        assert "go to" in palette(app)
        assert not {"mode", "pause", "restart"} & palette(app)
        assert not {"policy_set", "policy_undo", "policy_confirm", "engine_restart"} & {
            asked for asked, _ in feed.asked
        }


@pytest.mark.parametrize("keys", [("q",), ("g", "ctrl+c")])
async def test_leaving_a_replay_asks_nothing(keys: tuple[str, ...]) -> None:
    async with running(scenes.replayed()) as (app, _, pilot):
        await pilot.press(*keys)
        await pilot.pause()
    assert app.return_value is Outcome.DETACH


async def test_it_is_begun_as_the_command_line_says_as_soon_as_that_moment_is_read() -> None:
    opening = Opening(10.0, read_moment("14:20"))
    reading = {"complete": False, "loaded_share": 0.3, "playing": False}
    early = scenes.replayed(START, 1, end=START + 600, **reading)
    async with running(early, intent="replay", opening=opening) as (_, feed, pilot):
        await until(pilot, lambda: acts(feed) == [{"act": "speed", "speed": 10.0}, {"act": "play"}])
        feed.say(scenes.replayed(START + 1, 2, end=START + 1300, **reading))
        await until(pilot, lambda: acts(feed)[2:] == [{"act": "seek", "ts": START + 1200}])


async def test_ages_and_the_clock_are_those_of_the_record() -> None:
    late = scenes.replayed(NOW - 600)
    async with running(late, size=WIDE) as (app, _, pilot):
        assert text_on(app).splitlines()[0].rstrip().endswith("14:05:00")
        await pilot.press("7")
        await settled(pilot)
        assert "for 11 min" in text_on(app)
        assert "14:00:00 – 14:40:00 on 21 Sep" in text_on(app)


async def test_a_replay_process_that_ended_is_said_with_its_last_words() -> None:
    def ended() -> None:
        raise EndedError("the replay process has ended: no space left on the device")

    async with running(scenes.replayed(), on_disconnect=ended) as (app, feed, pilot):
        feed.say(Silence(NOW - 2, "no snapshot"))
        await until(pilot, lambda: "no space left" in text_on(app))
        assert "DISCONNECTED" in text_on(app)
        assert "REPLAY" in text_on(app)
        assert app.return_value is None, "the last picture stays"
        assert "space" not in app.screen.query_one("#keys").text
        await pilot.press("space")
        assert any("does not answer" in note.message for note in app._notifications)
        assert not acts(feed)


async def test_a_trace_that_can_not_be_opened_ends_the_console() -> None:
    def ended() -> None:
        raise EndedError("no engine record")

    async with running(intent="replay", on_disconnect=ended) as (app, _, pilot):
        assert "Opening the trace" in text_on(app)
        assert "REPLAY" in text_on(app)
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value is Outcome.NOTHING


async def test_notes_about_the_trace_are_told_once_and_stay_on_the_engine_screen() -> None:
    note = "3 unknown fields were left out"
    async with running(scenes.replayed(notes=[note])) as (app, feed, pilot):
        feed.say(scenes.replayed(NOW + 1, 2, notes=[note]))
        await settled(pilot)
        assert [told.message for told in app._notifications] == [note]
        await pilot.press("7")
        await settled(pilot)
        assert note in text_on(app)


async def test_the_charts_follow_a_seek_at_once_and_rest_while_the_replay_stands_still() -> None:
    def asked() -> int:
        return len(feed.actions("series"))

    async with running(scenes.replayed(playing=False)) as (_, feed, pilot):
        before = asked()
        feed.say(scenes.replayed(NOW - 300, 2, playing=False))
        await until(pilot, lambda: asked() == before + 1)
        await pilot.pause(1.2)
        assert asked() == before + 1


async def choose(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press("i", *keys)
    await settled(pilot)


async def test_what_if_asks_about_the_loop_and_shows_the_answer_beside_the_record() -> None:
    loop = (START + 60, START + 600)
    async with running(scenes.replayed(loop=loop)) as (app, feed, pilot):
        await choose(pilot, "down", "space", "tab")
        app.screen.query_one(Input).value = "schedule:[[1,4,4],[5,32,1]]"
        await pilot.press("enter")
        await until(pilot, lambda: "Tokens/step by bucket" in text_on(app))
        (asked,) = feed.actions("whatif")
        assert asked["policies"] == ["off", "static:2", "static:4", "schedule:[[1,4,4],[5,32,1]]"]
        assert (asked["start"], asked["end"]) == loop
        row = next(line for line in text_on(app).splitlines() if "static:2" in line)
        assert "1.87  1.81–1.91   1.93   94 %   205.0    195–215   −3 %" in row


async def test_a_policy_that_is_none_is_not_asked_for() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        await choose(pilot, "tab", *"static:x", "enter")
        assert "static takes a whole number" in text_on(app)
        assert not feed.actions("whatif")


async def test_a_long_what_if_shows_that_it_works_and_can_be_left() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        feed.thinking.clear()
        await choose(pilot, "enter")
        assert "working it out" in text_on(app)
        await pilot.press("enter")
        assert len(feed.actions("whatif")) == 1, "one question at a time"
        await pilot.press("escape")
        feed.thinking.set()
        await asyncio.sleep(0)
        await settled(pilot)
        assert len(app.screen_stack) == 1


async def test_a_what_if_that_fails_says_why_and_may_be_asked_again() -> None:
    async with running(scenes.replayed()) as (app, feed, pilot):
        feed.refusal = FeedError("refused", "no decode rows in the stretch")
        await choose(pilot, "enter")
        assert "no decode rows in the stretch" in text_on(app)
        feed.refusal = None
        await pilot.press("enter")
        await until(pilot, lambda: "Tokens/step by bucket" in text_on(app))


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
async def test_a_replay_draws_at_every_size(size: tuple[int, int]) -> None:
    async with running(scenes.replayed(complete=False, loaded_share=0.4), size=size) as (app, _, pilot):
        for key in ("1", "3", "7", "g"):
            await pilot.press(key)
            await settled(pilot)
            shown = text_on(app).splitlines()
            assert max(len(line) for line in shown) <= size[0]
            assert "REPLAY" in shown[0]
            assert "reading  40 %" in "\n".join(shown[-3:])


async def test_a_terminal_too_small_for_a_replay_says_that_alone() -> None:
    async with running(scenes.replayed(), size=(50, 12)) as (app, _, _):
        assert "too small here" in text_on(app)
        assert "●" not in text_on(app)
