"""A round through the console's screens and dialogs, and a count of what it has left behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import psutil
from textual.pilot import Pilot
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from console.app.application import SpecdeckApp

SCREENS: Final = ("1", "2", "3", "4", "5", "6", "7")
OVER_IT: Final = {
    "1": (("question_mark", "escape"), ("enter", "escape"), ("slash", "c", "escape"), ("b", "escape"), ("h", "escape")),
    "2": (("enter", "escape"), ("left", "left", "end")),
    "3": (("tab", "tab"), ("ctrl+p", "escape")),
    "4": (("down", "up"),),
    "5": (("question_mark", "escape"),),
    "6": (("down", "up"), ("at", "escape")),
    "7": (("home", "end"), ("x", "escape")),
}
"""Keys that open a dialog or a page over a screen, and close it."""


class Counts(NamedTuple):
    """What there is in this process. `left_over`: screens over a screen."""

    rss: int
    objects: int
    widgets: int
    screens: int
    timers: int
    workers: int
    left_over: int
    by_type: Counter[str]

    @property
    def lasting(self) -> tuple[int, ...]:
        """What has to be the same after each round. Workers come and go with what the screens ask."""
        return self.widgets, self.screens, self.timers, self.left_over

    def left_behind(self, before: Counts) -> bool:
        """There is something that was not there after a round before."""
        return self.lasting != before.lasting or self.workers > before.workers + 2


async def tour(pilot: Pilot[Any], between: Callable[[], Awaitable[None]]) -> None:
    """Every screen once, with what can lie over it. `between`: what goes on meanwhile, on each screen."""
    for screen in SCREENS:
        await pilot.press(screen)
        await between()
        for keys in OVER_IT[screen]:
            await pilot.press(*keys)
    await pilot.pause()


async def count(app: SpecdeckApp) -> Counts:
    """Counted once what goes on in the background has come to its end."""
    await asyncio.sleep(0.3)
    gc.collect()
    objects = gc.get_objects()
    kinds = (Widget, Screen, Timer, Worker)
    found = [sum(isinstance(one, kind) for one in objects if not isinstance(one, type)) for kind in kinds]
    names = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in objects)
    return Counts(
        psutil.Process().memory_info().rss, len(objects), found[0], found[1], found[2], found[3],
        len(app.screen_stack) - 1, names,
    )  # fmt: skip


def grown(before: Counts, after: Counts, least: int = 50) -> dict[str, int]:
    """Types of which there are at least so many more, and by a tenth."""
    return {
        name: after.by_type[name] - many
        for name, many in ((name, before.by_type[name]) for name in after.by_type)
        if after.by_type[name] - many >= max(least, many / 10)
    }
