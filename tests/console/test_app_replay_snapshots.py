"""Pictures of a replay: the Live screen playing, being read and looping, going to a moment, and what-if.

Update with `pytest tests/console/test_app_replay_snapshots.py --snapshot-update` and look at the SVG before committing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from console.feed.messages import Snapshot
from tests.console import scenes
from tests.console.driving import NARROW, WIDE, make_app, settled

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])


pytestmark = pytest.mark.usefixtures("in_utc")


def playing() -> Snapshot:
    return scenes.replayed()


def being_read() -> Snapshot:
    """The first third of a trace of yesterday, as far as it was read."""
    return scenes.replayed(scenes.START + 300, end=scenes.START + 780, complete=False, loaded_share=0.33, speed=1.0)


def looping_at_the_end() -> Snapshot:
    return scenes.replayed(
        scenes.END, playing=False, speed=None, loop=(scenes.START + 1900, scenes.END), position="step 4811 of e0"
    )


def after(*keys: str) -> Callable[[Pilot[Any]], Any]:
    async def run(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        pilot.app.clear_notifications()  # they go by themselves, some time
        for key in keys:
            await pilot.press(key)
            await settled(pilot)

    return run


@SIZES
@pytest.mark.parametrize("scene", [playing, being_read, looping_at_the_end], ids=["playing", "reading", "loop"])
def test_live(snap_compare: Any, scene: Callable[[], Snapshot], size: tuple[int, int]) -> None:
    app, _ = make_app(scene(), intent="replay")
    assert snap_compare(app, terminal_size=size, run_before=after())


def test_engine_names_the_trace(snap_compare: Any) -> None:
    app, _ = make_app(scenes.replayed(notes=["3 unknown fields were left out"]), intent="replay")
    assert snap_compare(app, terminal_size=NARROW, run_before=after("7"))


@pytest.mark.parametrize("typed", ["14:20", "25:00"], ids=["moment", "none"])
def test_go_to(snap_compare: Any, typed: str) -> None:
    app, _ = make_app(scenes.replayed(), intent="replay")
    assert snap_compare(app, terminal_size=NARROW, run_before=after("g", *typed))


def test_what_if_asks(snap_compare: Any) -> None:
    app, _ = make_app(scenes.replayed(), intent="replay")
    assert snap_compare(app, terminal_size=NARROW, run_before=after("i", "down", "space"))


@SIZES
def test_what_if_answers(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.replayed(), intent="replay")
    assert snap_compare(app, terminal_size=size, run_before=after("i", "enter"))
