"""The registry of keys: nothing is bound twice, and every key does something where it is offered."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Log

from console.app import actions
from console.app.actions import ACTIONS, DIALOGS, Action, Context
from console.app.application import SpecdeckApp
from console.app.drawing.pick_list import PickList
from console.app.live.table import BucketTable
from console.app.rehearsal import desk as rehearsal_desk
from console.feed.messages import Snapshot
from tests.console import map_scenes, scenes, trace_scenes
from tests.console.driving import NARROW, running, settled, until

BASE: tuple[Context, ...] = ("live", "bucket", "policy", "alerts", "map", "traces", "engine")
FORBIDDEN = {"ctrl+s", "ctrl+a", "ctrl+b", "ctrl+j"}

WAY_THERE: dict[Context, tuple[str, ...]] = {
    "everywhere": (),
    "live": (),
    "bucket": ("2",),
    "policy": ("3",),
    "alerts": ("4",),
    "map": ("5",),
    "traces": ("6",),
    "engine": ("7",),
    "choose": ("m", "up"),
    "edit": ("3", "e"),
    "rehearse": ("5", "r"),
    "export": ("x",),
    "record": ("6", "r"),
    "confirm": ("m", "up", "enter"),
    "leave": ("q",),
    "go": ("g",),
    "what_if": ("i",),
    "compare": ("equals_sign", "equals_sign"),
    "web": ("w",),
    "page": ("question_mark",),
    "balance": ("b",),
}
BEFORE: dict[str, tuple[str, ...]] = {
    "live": ("7",),
    "back": ("slash", "c", "h", "enter"),
    "follow": ("home",),
    "later": ("left", "left"),
    "newest": ("left",),
    "shorter": ("right_square_bracket",),
    "go_there": ("4", "0", "percent_sign"),
}
IN_A_REPLAY: tuple[Context, ...] = ("go", "what_if")
"""What an action needs to have something to do."""
WITH_A_MAP: tuple[Context, ...] = ("map", "rehearse")


def keys_of(action: Action) -> list[str]:
    return action.keys.split(",")


@pytest.mark.parametrize("context", [*BASE, *sorted(DIALOGS)])
def test_no_key_is_bound_twice(context: Context) -> None:
    everywhere = [*actions.in_context("everywhere"), *actions.in_context("replay")]
    others = [action for action in everywhere if context in BASE or action.priority]
    keys = [key for action in (*actions.in_context(context), *others) for key in keys_of(action)]
    assert sorted(keys) == sorted(set(keys))


def test_no_key_of_a_terminal_multiplexer_is_taken() -> None:
    assert not FORBIDDEN & {key for action in ACTIONS.values() for key in keys_of(action)}


def test_the_markdown_table_has_a_row_for_each_action() -> None:
    rows = actions.markdown_table().splitlines()[2:]
    assert len(rows) == len(ACTIONS)
    assert "| `m` | everywhere | Mode: off, static, schedule, adaptive or advise (asks first) |" in rows


def state(app: SpecdeckApp) -> Any:
    """What a key may change, as one comparable value."""
    live = app.screen_stack[0]
    order = getattr(live, "_order", None)
    return (
        app.current_mode,
        [type(screen).__name__ for screen in app.screen_stack],
        app.theme,
        app.picture.paused_since,
        app.return_value,
        [table.text for table in live.query(BucketTable)],
        [(field.display, field.has_focus) for field in live.query(Input)],
        [log.scroll_offset for log in live.query(Log)],
        app.focused.id if app.focused is not None else None,
        order.sorted_by if order else None,
        len(app._notifications),
        app.picture.expected,
        app.picture.loop_from,
        [view.text for view in app.screen.query(PickList)],
        getattr(app.screen, "looking_at", None),
        [round(scroll.scroll_y) for scroll in app.screen.query("#page-scroll")],
    )


PRESSED_HERE = {id: action for id, action in ACTIONS.items() if action.context != "replay"}
"""Those of a replay are pressed in test_app_replay."""


@pytest.mark.parametrize("action", PRESSED_HERE.values(), ids=PRESSED_HERE)
async def test_every_key_does_something(action: Action, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scenes.replayed() if action.context in IN_A_REPLAY else scenes.troubled()
    if action.context in WITH_A_MAP:
        monkeypatch.setattr(rehearsal_desk, "built_in_plans", lambda: map_scenes.PLANS)
        scene = map_scenes.rehearsing() if action.id == "stop_rehearsal" else map_scenes.mapped()
    if action.id == "end_recording":
        scene = scenes.live(recording=trace_scenes.recording())
    for key in keys_of(action):
        await does_something(key, (*WAY_THERE[action.context], *BEFORE.get(action.id, ())), scene)


async def does_something(key: str, way_there: tuple[str, ...], scene: Snapshot) -> None:
    async with running(scene, size=NARROW) as (app, feed, pilot):
        feed.map = map_scenes.operating_map()
        await press(pilot, *way_there)
        before = state(app)
        await press(pilot, key)
        await until(pilot, lambda: state(app) != before)


async def test_a_key_moves_with_the_keymap_and_the_key_line_says_so() -> None:
    async with running(scenes.live(), keymap={"mode": "f5"}) as (app, _, pilot):
        await press(pilot, "m")
        assert len(app.screen_stack) == 1
        assert "f5 mode" in app.screen.query_one("#keys").text
        await press(pilot, "f5")
        assert type(app.screen).__name__ == "ModeDialog"


@pytest.mark.parametrize(
    ("key", "scene", "options", "reason"),
    [
        ("m", scenes.starting(), {}, "no engine is serving"),
        ("m", scenes.live(), {"read_only": True}, "read-only"),
        ("enter", scenes.no_bucket(), {}, "no bucket"),
        ("s", scenes.no_bucket(), {}, "no bucket"),
    ],
)
async def test_a_key_that_can_do_nothing_now_is_not_shown_and_says_why(
    key: str, scene: Any, options: dict[str, Any], reason: str
) -> None:
    async with running(scene, **options) as (app, _, pilot):
        label = next(action.label for action in ACTIONS.values() if key in keys_of(action))
        assert f"{key} {label}" not in app.screen.query_one("#keys").text
        await press(pilot, key)
        assert len(app.screen_stack) == 1
        assert any(reason in note.message for note in app._notifications)


async def test_restart_is_refused_for_an_engine_that_specdeck_did_not_start() -> None:
    async with running(scenes.live(engines=[scenes.engine(owned=False)])) as (app, feed, pilot):
        await press(pilot, "7")
        assert "restart" not in app.screen.query_one("#keys").text
        await press(pilot, "r")
        assert any("did not start" in note.message for note in app._notifications)
        assert not feed.actions("engine_restart")


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        if pilot.app.return_value is None:
            await settled(pilot)
