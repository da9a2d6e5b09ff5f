"""Pictures of every screen in every state, at three sizes, dark and light, from recorded data: as text.

Update with `pytest tests/console/test_app_pictures.py --snapshot-update`, and read the difference before committing it.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.app import App
from textual.pilot import Pilot

from console.app.application import SpecdeckApp
from console.app.drawing.themes import CLEAR, DARK, LIGHT
from console.app.frame.deck_screen import HEIGHTS, WIDTHS
from console.app.live.screen import LiveScreen
from tests.console.driving import LARGE, NARROW, WIDE
from tests.console.picture_states import STATES, State
from tests.console.picture_text import Capture, painted, read, written
from tests.console.recorded_feed import RecordedFeed

SCREENS = tuple(SpecdeckApp.MODES)
SIZES = (NARROW, WIDE, LARGE)
DISCONNECTED = "disconnected"
A_FRAME = 1 / 50
"""Textual lays out and paints sixty times a second at most."""
NOT_FOR_OPERATORS = re.compile(r"\bNone\b|\bnan\b|\bNaN\b|Traceback|<[a-z_.]+ object|\{'")

Pictures = dict[tuple[str, tuple[int, int], str], Capture]


class TextSnapshots(SingleFileSnapshotExtension):
    _file_extension = "txt"
    _write_mode = WriteMode.TEXT


@pytest.fixture
def as_text(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(TextSnapshots)


def title(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"


@contextmanager
def environment(**changes: str) -> Iterator[None]:
    """Times in UTC, and colours unless a change says otherwise."""
    before = dict(os.environ)
    os.environ.pop("NO_COLOR", None)
    os.environ.update({"TZ": "UTC"} | changes)
    time.tzset()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


async def at_rest(pilot: Pilot[Any], feed: RecordedFeed) -> None:
    """Everything was said, asked and drawn."""
    for _ in range(400):
        await pilot.pause()
        if feed.at_rest and not _series_due(pilot.app.screen) and _sized(pilot.app):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the screen never came to rest")


def _sized(app: App[Any]) -> bool:
    """A screen that was hidden while the terminal was resized learns of it after it is shown."""
    width, height = app.size
    due = [max(name for name in places if size >= name[0])[1] for places, size in ((WIDTHS, width), (HEIGHTS, height))]
    return app.screen.size == app.size and all(map(app.screen.has_class, due))


def _series_due(screen: object) -> bool:
    """The Live screen asks for its charts in its own time."""
    if not isinstance(screen, LiveScreen) or screen.has_series:
        return False
    deck = screen.deck.picture
    charts = screen.query_one("#charts").display
    return charts and deck.link.state == "connected" and deck.snapshot is not None and bool(deck.snapshot.buckets)


async def still(pilot: Pilot[Any], feed: RecordedFeed) -> Capture:
    """The picture once it changes no more: styles and sizes follow a resize in turns of their own."""
    await at_rest(pilot, feed)
    seen = painted(pilot.app)
    for _ in range(50):
        await asyncio.sleep(A_FRAME)
        await at_rest(pilot, feed)
        before, seen = seen, painted(pilot.app)
        if before == seen:
            return read(seen)
    raise AssertionError("the picture goes on changing")


async def taken(state: State, themes: dict[str, tuple[tuple[int, int], ...]]) -> Pictures:
    """One running console shows every screen at the sizes that are wanted of each theme."""
    feed, made = state.feed(), Pictures()
    app = SpecdeckApp(feed, now=lambda: state.now, **state.options)
    async with app.run_test(size=LARGE) as pilot:
        await at_rest(pilot, feed)
        for screen in SCREENS:
            await app.switch_mode(screen)
            await at_rest(pilot, feed)
        for update in state.then:
            feed.say(update)
        await at_rest(pilot, feed)
        app.clear_notifications()
        for theme, sizes in themes.items():
            app.theme = theme
            for size in sizes:
                await pilot.resize_terminal(*size)
                for screen in SCREENS:
                    await app.switch_mode(screen)
                    made[screen, size, theme] = await still(pilot, feed)
    return made


@cache
def pictures(name: str) -> Pictures:
    themes = {DARK.name: SIZES, LIGHT.name: SIZES}
    if name == "live":
        themes[CLEAR.name] = (WIDE,)
    if name == "failed":  # a start like `starting`, but for its text
        themes = {DARK.name: (NARROW,)}
    with environment():
        return asyncio.run(taken(STATES[name](), themes))


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("state", STATES)
def test_picture(state: str, screen: str, as_text: SnapshotAssertion) -> None:
    made = pictures(state)
    shown: dict[str, dict[str, Capture]] = {}
    for (of, size, theme), picture in made.items():
        if of == screen:
            shown.setdefault(title(size), {})[theme] = picture
    assert written(shown) == as_text


@pytest.mark.parametrize("state", STATES)
def test_themes_differ_in_colours_alone(state: str) -> None:
    made = pictures(state)
    for (screen, size, theme), picture in made.items():
        assert picture.text == made[screen, size, DARK.name].text, (screen, size, theme)


@pytest.mark.parametrize("state", STATES)
def test_pictures_keep_to_the_terminal_and_to_plain_words(state: str) -> None:
    for (screen, (width, height), theme), picture in pictures(state).items():
        where = (screen, width, theme)
        lines = picture.text.splitlines()
        assert (len(picture.lines), picture.widest) == (height, width), where
        assert lines[0].startswith(" specdeck "), where
        assert "? help" in lines[-1], (where, lines[-1])
        assert not NOT_FOR_OPERATORS.search(picture.text), (where, NOT_FOR_OPERATORS.search(picture.text))


def test_a_replay_says_so_on_every_screen() -> None:
    assert all("REPLAY" in picture.text.splitlines()[0] for picture in pictures("replay").values())


def test_a_lost_station_is_told_on_every_screen() -> None:
    for where, picture in pictures(DISCONNECTED).items():
        lines = picture.text.splitlines()
        assert "DISCONNECTED" in lines[0], where
        assert any("disconnected since" in line for line in lines[-3:]), where


@pytest.mark.parametrize("state", ["empty", "connecting", "starting", "failed"])
def test_where_there_is_nothing_yet_a_screen_says_what_will_be_there(state: str) -> None:
    for where, picture in pictures(state).items():
        body = picture.text.splitlines()[1:-3]
        words = re.findall(r"[^\W\d_]{3,}", " ".join(body))
        assert len(words) > 5, where


def test_without_colours_the_same_is_there_in_greys() -> None:
    with environment(NO_COLOR="1"):
        grey = asyncio.run(taken(STATES["alerting"](), {DARK.name: (NARROW,)}))
    for (screen, size, theme), picture in grey.items():
        assert picture.text == pictures("alerting")[screen, size, theme].text
        for colour in re.findall(
            r"#(\w\w)(\w\w)(\w\w)", " ".join(style for line in picture.lines for _, style in line)
        ):
            assert len(set(colour)) == 1, (screen, colour)


async def test_below_the_least_size_every_screen_and_dialog_says_so() -> None:
    state = STATES["live"]()
    feed = state.feed()
    app = SpecdeckApp(feed, now=lambda: state.now)
    async with app.run_test(size=(50, 12)) as pilot:
        for screen in SCREENS:
            await app.switch_mode(screen)
            assert "too small" in (await still(pilot, feed)).text, screen
        for keys in ("question_mark", "m"):
            await app.switch_mode("live")
            await pilot.press(keys)
            assert len(app.screen_stack) == 2
            small = (await still(pilot, feed)).text
            assert "too small here\n" in small
            assert "50×12, needs 60×15" in small
            assert not set("╭│╰") & set(small)
            await pilot.press("escape")
        await pilot.press("q")
        assert "detach" in (await still(pilot, feed)).text
