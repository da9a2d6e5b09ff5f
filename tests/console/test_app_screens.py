"""What the screens do with what the station says, and what they ask of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.widgets import Log, OptionList

from console.app.application import SpecdeckApp
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.dialogs import ConfirmDialog
from console.app.frame.outcome import Outcome
from console.app.live.table import BucketTable
from console.feed.client import FeedError, Silence
from console.feed.protocol import LogChunk
from engine.records import PolicyMode
from tests.console import scenes
from tests.console.driving import NARROW, WIDE, running, settled, text_on, until


def table_text(app: SpecdeckApp) -> str:
    return app.screen.query_one(BucketTable).text


def workloads(app: SpecdeckApp) -> list[str]:
    return [line[3:].split()[0] for line in table_text(app).splitlines()]


async def test_a_hostile_workload_name_is_shown_as_it_is() -> None:
    async with running(scenes.live(), size=(200, 50)) as (app, _, pilot):
        assert scenes.HOSTILE in text_on(app)
        await pilot.press("down", "down", "down", "down")
        await settled(pilot)
        assert f"α · {scenes.HOSTILE}" in text_on(app)
        await pilot.press("enter")
        await settled(pilot)
        assert f"bucket        {scenes.HOSTILE}" in text_on(app)


async def test_control_characters_of_a_workload_name_never_reach_the_terminal() -> None:
    evil = scenes.bucket(scenes.key("a\x1b[31mred\x07\nb\u202ec"), 0.5, 1.0)
    async with running(scenes.live(buckets=[evil])) as (app, _, _):
        shown = text_on(app)
        assert "a·[31mred··b·c" in shown
        assert not any(ord(char) < 32 for line in shown.splitlines() for char in line)


async def test_rows_keep_their_place_until_the_operator_sorts() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        before = workloads(app)
        assert before[:3] == ["code", "repeat", "chat"]
        faster = [scenes.bucket(scenes.key("new"), 0.5, 5.0), *reversed(scenes.four_workloads())]
        feed.say(scenes.live(number=2, buckets=faster))
        await settled(pilot)
        assert workloads(app) == [*before, "new"]
        await pilot.press("s", "s")  # tokens/s, then α with the lowest first
        await settled(pilot)
        assert workloads(app)[:2] == ["creative", "chat"]


async def test_the_cursor_stays_on_its_bucket_when_rows_move() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await pilot.press("down")
        await pilot.press("s", "s")
        await settled(pilot)
        table = app.screen.query_one(BucketTable)
        assert table.cursor is not None
        assert table.cursor.workload == "repeat"


async def test_the_filter_leaves_only_what_contains_it() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await pilot.press("slash", *"chat", "enter")
        await settled(pilot)
        assert workloads(app) == ["chat"]
        assert "1 of 7 buckets" in text_on(app)
        await pilot.press("escape")
        await settled(pilot)
        assert len(workloads(app)) == 7


async def test_a_click_selects_a_row_and_a_click_on_a_title_sorts() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await pilot.click(BucketTable, offset=(10, 2))
        await settled(pilot)
        table = app.screen.query_one(BucketTable)
        assert table.cursor is not None
        assert table.cursor.workload == "chat"
        await pilot.click("#bucket-header", offset=(6, 0))
        await settled(pilot)
        assert "order: workload" in text_on(app)


async def test_pausing_holds_the_picture_and_resuming_takes_the_newest() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("p")
        feed.say(scenes.live(number=2, tokens_per_second=999.0))
        await settled(pilot)
        assert "PAUSED" in text_on(app)
        assert "212 tok/s" in text_on(app)
        await pilot.press("p")
        feed.say(scenes.live(number=3, tokens_per_second=999.0))
        await settled(pilot)
        assert "PAUSED" not in text_on(app)
        assert "999 tok/s" in text_on(app)


async def test_the_mode_is_set_only_after_the_confirmation() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("m")
        await settled(pilot)
        assert app.screen.query_one(OptionList).option_count == 7  # off, K 1 to 4, adaptive, advise
        await pilot.press("up", "up", "enter")
        await settled(pilot)
        shown = text_on(app)
        assert "before  static:4" in shown
        assert "after   static:2" in shown
        assert "undo    u, or m and then static:4" in shown
        await pilot.press("enter")  # not a yes
        await settled(pilot)
        assert isinstance(app.screen, ConfirmDialog)
        assert not feed.actions("policy_set")
        await pilot.press("y")
        await until(pilot, lambda: bool(feed.actions("policy_set")))
        (sent,) = feed.actions("policy_set")
        assert (sent["policy"], sent["expect"]) == ({"mode": "static", "k": 2}, 3)


@pytest.mark.parametrize(
    "keys", [("escape",), ("up", "escape"), ("up", "enter", "escape"), ("up", "enter", "n"), ("enter",)]
)
async def test_a_mode_not_confirmed_changes_nothing(keys: tuple[str, ...]) -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("m", *keys)
        await settled(pilot)
        assert len(app.screen_stack) == 1
        assert not feed.actions("policy_set")


async def test_a_refused_mode_is_told() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.refusal = FeedError("refused", "the policy has changed in the meantime")
        await pilot.press("m", "up", "enter", "y")
        await until(pilot, lambda: len(app._notifications) == 1)
        assert next(iter(app._notifications)).message == "nothing was changed: the policy has changed in the meantime"


async def test_a_policy_on_its_way_shows_until_every_engine_applied_it() -> None:
    off = PolicyMode(mode="off")
    waiting = scenes.engine(policy_sent=4, policy_applied=3)
    async with running(scenes.live(policy=off, policy_version=4, engines=[waiting])) as (app, feed, pilot):
        assert "off applying…" in text_on(app)
        applied = scenes.engine(policy_sent=4, policy_applied=4, executed_k=0, executed_limit="off")
        feed.say(scenes.live(number=2, policy=off, policy_version=4, engines=[applied]))
        await settled(pilot)
        assert "applying" not in text_on(app)
        assert "off  K 0" in text_on(app)


async def test_an_executed_k_that_differs_is_marked() -> None:
    async with running(scenes.mismatched()) as (app, _, _):
        assert "K 4→1 ▼" in text_on(app)


async def test_restart_asks_first() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("7", "r")
        await settled(pilot)
        assert "Requests under way are cut off (7 now)" in text_on(app)
        assert not feed.actions("engine_restart")
        await pilot.press("y")
        await until(pilot, lambda: bool(feed.actions("engine_restart")))
        assert feed.actions("engine_restart") == [{"engine": "e0"}]


@pytest.mark.parametrize(
    ("keys", "outcome"),
    [
        (("q", "d"), Outcome.DETACH),
        (("q", "s"), Outcome.STOP),
        (("ctrl+c", "ctrl+c"), Outcome.DETACH),
        (("m", "ctrl+q", "d"), Outcome.DETACH),
    ],
)
async def test_the_ways_out(keys: tuple[str, ...], outcome: Outcome) -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press(*keys)
        await pilot.pause()
    assert app.return_value is outcome
    assert not feed.actions("stop"), "whoever opened the console stops the station"


async def test_staying_is_no_way_out() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await pilot.press("q", "escape")
        await settled(pilot)
        assert app.return_value is None
        assert len(app.screen_stack) == 1


async def test_a_read_only_console_offers_to_detach_alone() -> None:
    async with running(scenes.live(), read_only=True) as (app, _, pilot):
        await pilot.press("q")
        await settled(pilot)
        assert "stop everything" not in text_on(app)
        await pilot.press("s")
        assert app.return_value is None


async def test_a_lost_station_is_said_and_its_return_is_taken_up() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.say(Silence(scenes.NOW - 12, "no snapshot from the station"))
        await settled(pilot)
        assert "DISCONNECTED" in text_on(app)
        assert "disconnected since" in text_on(app)
        assert "96.1" in table_text(app), "the last picture stays"
        assert app.screen.has_class("-stale")
        feed.say(scenes.live(station="s2"))
        await settled(pilot)
        assert "DISCONNECTED" not in text_on(app)
        assert not app.screen.has_class("-stale")


async def test_whoever_opened_the_console_is_told_that_the_station_is_away() -> None:
    calls: list[int] = []

    def restart() -> str:
        calls.append(1)
        return "starting a new station"

    async with running(scenes.live(), on_disconnect=restart) as (app, feed, pilot):
        feed.say(Silence(scenes.NOW - 2, "no snapshot"))
        await until(pilot, lambda: "starting a new station" in text_on(app))
        feed.say(Silence(scenes.NOW - 4, "no snapshot"))
        await settled(pilot)
        assert len(calls) == 1, "asked again only after a while"


async def test_a_station_of_another_version_is_no_reason_to_start_another() -> None:
    calls: list[int] = []
    too_old = Silence(None, "this console is too old: update specdeck", incompatible=True)
    async with running(too_old, on_disconnect=lambda: calls.append(1)) as (app, feed, pilot):
        assert "this console is too old" in text_on(app)
        feed.say(scenes.live())
        feed.say(replace_since(too_old))
        await settled(pilot)
        assert "DISCONNECTED" in text_on(app)
        assert "too old: update specdeck" in text_on(app)
        assert not calls


def replace_since(silence: Silence) -> Silence:
    return Silence(scenes.NOW - 3, silence.reason, silence.incompatible)


async def test_before_the_first_snapshot_the_screen_says_what_it_waits_for() -> None:
    async with running() as (app, _, _):
        assert "Connecting to the station" in text_on(app)


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_a_screen_without_buckets_gives_a_request_to_paste(size: tuple[int, int]) -> None:
    async with running(scenes.no_bucket(), size=size) as (app, _, _):
        shown = text_on(app)
        assert "curl http://127.0.0.1:8000/v1/chat/completions" in shown
        assert '"vllm_xargs":{"workload":"mine"}' in shown


async def test_a_first_bucket_replaces_the_hint() -> None:
    async with running(scenes.no_bucket()) as (app, feed, pilot):
        feed.say(scenes.live(number=2))
        await settled(pilot)
        assert "curl" not in text_on(app)
        assert "code" in text_on(app)


async def test_the_log_follows_until_one_scrolls_away() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("7")
        await until(pilot, lambda: "following" in text_on(app) and "POST" in text_on(app))
        assert "INFO: 127.0.0.1" in text_on(app), "colour codes of the log are taken out"
        assert "[bold]x[/]" in text_on(app)
        await pilot.press("home")
        await until(pilot, lambda: "end follows" in text_on(app))
        feed.log = LogChunk("~/.local/share/specdeck/logs/e0.log", "one\ntwo\n", len(scenes.LOG) + 8)
        await until(pilot, lambda: "+2 new lines" in text_on(app))
        await pilot.press("end")
        await until(pilot, lambda: "following" in text_on(app) and "two" in text_on(app))


async def test_a_log_begun_anew_replaces_the_old_one() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("7")
        await until(pilot, lambda: "POST" in text_on(app))
        feed.log = LogChunk("~/.local/share/specdeck/logs/e0.log", "begun anew\n", 11)
        await until(pilot, lambda: "begun anew" in text_on(app))
        assert app.screen.query_one(Log).line_count <= 2


async def test_buckets_of_two_model_versions_are_told_apart() -> None:
    other = scenes.bucket(scenes.key("code", version="SmolLM2-135M-Instruct+ngram/ngram@vllm-0.33.0"), 0.2, 1.0)
    async with running(scenes.live(buckets=[*scenes.four_workloads(), other])) as (app, _, _):
        shown = table_text(app)
        assert "0.32.0" in shown
        assert "0.33.0" in shown


async def test_a_replay_never_lets_one_forget_it() -> None:
    async with running(scenes.live(source="replay"), size=NARROW) as (app, _, _):
        assert "REPLAY" in text_on(app)


async def test_a_store_that_stopped_recording_is_said() -> None:
    full = replace(scenes.live().store, recording=False, error="the disk is full")
    async with running(scenes.live(store=full), size=NARROW) as (app, _, pilot):
        assert "NOT RECORDING" in text_on(app)
        await pilot.press("7")
        await settled(pilot)
        assert "the disk is full" in text_on(app)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (100, 30), (120, 36), (200, 50)])
@pytest.mark.parametrize("key", ["1", "3", "5", "7", "question_mark", "m", "q", "enter"])
async def test_every_screen_draws_at_every_size(size: tuple[int, int], key: str) -> None:
    async with running(scenes.alerting(), scenes.live(), size=size) as (app, _, pilot):
        await pilot.press(key)
        await settled(pilot)
        assert max(len(line) for line in text_on(app).splitlines()) <= size[0]


async def test_a_tick_while_the_app_ends_finds_screens_without_widgets_and_draws_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks: list[int] = []

    def tick(screen: DeckScreen) -> None:
        ticks.append(len(screen.children))
        screen.deck._tick()

    monkeypatch.setattr(DeckScreen, "on_unmount", tick, raising=False)
    async with running(scenes.live()):
        pass
    assert ticks == [0]
