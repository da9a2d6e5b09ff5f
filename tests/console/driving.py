"""How the tests drive the app: a frozen clock, a feed in memory, waiting for conditions instead of sleeping."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from console.app.alerts.screen import AlertsScreen
from console.app.application import SpecdeckApp
from console.app.bucket.screen import BucketScreen
from console.app.live.screen import LiveScreen
from console.app.map.screen import MapScreen
from console.app.policy.screen import PolicyScreen
from console.app.traces.screen import TracesScreen
from console.feed.client import Update
from tests.console import scenes
from tests.console.memory_feed import MemoryFeed

WIDE, NARROW, LARGE = (120, 36), (80, 24), (200, 50)


def make_app(*updates: Update, **options: Any) -> tuple[SpecdeckApp, MemoryFeed]:
    feed = MemoryFeed(*updates)
    return SpecdeckApp(feed, now=lambda: scenes.NOW, **options), feed


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Wait for a condition, for at most 30 s."""
    for _ in range(600):
        if condition():
            await pilot.pause()
            return
        await pilot.pause(0.05)
    raise AssertionError(f"still not so after 30 s: {condition}")


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until everything the feed said is drawn, charts and history included."""
    app = pilot.app
    assert isinstance(app, SpecdeckApp)
    await until(pilot, lambda: _all_drawn(app))


def _all_drawn(app: SpecdeckApp) -> bool:
    feed, screen = getattr(app.feed, "plain", app.feed), app.screen
    assert isinstance(feed, MemoryFeed)
    if not feed.taken_in:
        return False
    if app.picture.snapshot is None or not feed.connected:
        return True
    if isinstance(screen, PolicyScreen | AlertsScreen):
        return screen.has_history
    if isinstance(screen, TracesScreen):
        return screen.answered
    if isinstance(screen, MapScreen):
        return screen.answered or app.picture.replaying
    if isinstance(screen, BucketScreen):
        return screen.has_answers or screen.key is None
    if isinstance(screen, LiveScreen) and app.picture.snapshot.buckets:
        balanced = not screen.query_one("#balance").display or screen.balance.answered
        return balanced and (not screen.query_one("#charts").display or screen.has_series)
    return True


@asynccontextmanager
async def running(
    *updates: Update, size: tuple[int, int] = WIDE, **options: Any
) -> AsyncIterator[tuple[SpecdeckApp, MemoryFeed, Pilot[Any]]]:
    app, feed = make_app(*updates, **options)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        yield app, feed, pilot


def text_on(app: SpecdeckApp) -> str:
    """The whole screen as text, line by line."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()  # the one place that needs to see what is painted
    return "\n".join(strip.text[:width] for strip in lines[:height])
