"""Every key in every state: it does something that shows or says why not, breaks nothing, and leaves no dialog open."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.app import actions
from console.app.actions import ACTIONS, DIALOGS, Action, Context
from console.app.application import SpecdeckApp
from console.app.rehearsal import desk as rehearsal_desk
from tests.console import map_scenes
from tests.console.driving import NARROW
from tests.console.picture_states import STATES, State
from tests.console.picture_text import capture
from tests.console.recorded_feed import RecordedFeed
from tests.console.test_app_actions import BEFORE, WAY_THERE

SCREENS: tuple[Context, ...] = tuple(SpecdeckApp.MODES)  # type: ignore[arg-type]
IN_STATE = {
    "live": STATES["live"],
    "alerting": STATES["alerting"],
    "read-only": lambda: replace(STATES["live"](), options={"read_only": True}),
    "replay": STATES["replay"],
    "disconnected": STATES["disconnected"],
    "empty": STATES["empty"],
    "connecting": STATES["connecting"],
}
TURNS = 40
"""How often the screen may be painted before a key counts as silent."""

ALONE: dict[str, tuple[Context, ...]] = {"alerting": ("alerts", "bucket")}
"""Screens that a state is about; another state has the rest."""

NOTHING_TO_DO: dict[str, str] = {
    "back": "there is no filter and no sorting to drop",
    "follow": "the log is short: its end is in view",
    "next_place": "an empty list has no file to go to",
    "newest": "a bucket of one point, or none",
    "other_list": "a list that is empty has nothing to go to",
}
"""Actions that may be without an effect where there is nothing for them to do, and why that is right."""


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever a key writes goes into a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "SPECDECK_RUNTIME_DIR", "SPECDECK_DATA_DIR", "SPECDECK_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(rehearsal_desk, "built_in_plans", lambda: map_scenes.PLANS)


class Console:
    """A running console that can be left without ending."""

    def __init__(self, app: SpecdeckApp, feed: RecordedFeed, pilot: Pilot[Any]) -> None:
        self.app = app
        self.feed = feed
        self.pilot = pilot
        self.left = 0

    def looks(self) -> tuple[object, ...]:
        """All that an operator would see change."""
        app = self.app
        return (
            capture(app).text, app.theme, len(app._notifications), len(app.screen_stack), self.left,
            app.focused.id if app.focused is not None else None, getattr(app.screen, "looking_at", None),
        )  # fmt: skip

    async def settle(self) -> None:
        for _ in range(TURNS):
            await self.pilot.pause()
            if self.feed.at_rest:
                return
            await asyncio.sleep(0.005)

    async def go(self, screen: Context) -> None:
        """To a screen, out of every dialog."""
        self.app.clear_notifications()
        if self.app.current_mode == screen and len(self.app.screen_stack) == 1:
            return
        while len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        await self.app.switch_mode(screen)
        await self.settle()

    async def press(self, key: str) -> None:
        await self.pilot.press(key)
        await self.settle()

    async def does_something(self, key: str) -> bool:
        before = self.looks()
        await self.press(key)
        for _ in range(TURNS):
            if self.looks() != before:
                return True
            await self.pilot.pause(0.005)
        return False


@asynccontextmanager
async def console(state: State) -> AsyncIterator[Console]:
    feed = state.feed()
    app = SpecdeckApp(feed, now=lambda: state.now, **state.options)
    async with app.run_test(size=NARROW) as pilot:
        made = Console(app, feed, pilot)

        def left(*_: object, **__: object) -> None:
            made.left += 1

        app.exit = left  # type: ignore[method-assign]
        await made.settle()
        for update in state.then:
            feed.say(update)
        await made.settle()
        yield made
        del app.exit  # type: ignore[method-assign]


def place_of(action: Action) -> Context:
    return action.context if action.context in SCREENS else "live"


@pytest.mark.parametrize("screen", SCREENS)
def test_a_key_means_one_thing_on_a_screen(screen: Context) -> None:
    here = [*actions.in_context(screen), *actions.in_context("everywhere"), *actions.in_context("replay")]
    keys = [key for action in here for key in action.keys.split(",")]
    assert sorted(keys) == sorted(set(keys))


def test_every_action_is_pressed_by_a_test() -> None:
    known = {*SCREENS, "everywhere", "replay", *DIALOGS}
    assert {action.context for action in ACTIONS.values()} <= known
    assert set(DIALOGS) <= set(WAY_THERE)
    assert set(NOTHING_TO_DO) <= set(ACTIONS)


@pytest.mark.parametrize("state", IN_STATE)
async def test_every_key_shows_something_or_says_why_not(state: str) -> None:
    silent: list[str] = []
    async with console(IN_STATE[state]()) as shown:
        pressed = [action for action in ACTIONS.values() if action.context not in DIALOGS]
        for action in pressed:
            if action.context == "replay" and shown.app.picture.replay is None:
                continue  # a replay's keys are keys only in one
            if action.context not in ALONE.get(state, (action.context,)):
                continue
            await shown.go(place_of(action))
            for key in BEFORE.get(action.id, ()):
                await shown.press(key)
            if not await shown.does_something(action.keys.split(",")[0]):
                silent.append(action.id)
    assert set(silent) <= set(NOTHING_TO_DO), silent


@pytest.mark.parametrize("state", ["live", "replay", "disconnected"])
async def test_keys_at_random_break_nothing_and_escape_leads_back(state: str) -> None:
    chance = random.Random(state)
    keys = sorted({key for action in ACTIONS.values() for key in action.keys.split(",")})
    keys += ["tab", "enter", "up", "down", "pageup", "home", "x", "3", "full_stop"]
    async with console(IN_STATE[state]()) as shown:
        for _ in range(4):
            pressed = [chance.choice(keys) for _ in range(16)]
            for key in pressed:
                await shown.pilot.press(key)
            for _ in range(8):
                if len(shown.app.screen_stack) > 1:
                    await shown.press("escape")
            assert len(shown.app.screen_stack) == 1, pressed
            assert "? help" in capture(shown.app).text.splitlines()[-1], pressed
