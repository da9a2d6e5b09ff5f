"""Pictures of the Traces screen and its dialog.

Update with `pytest tests/console/test_app_traces_snapshots.py --snapshot-update` and look at the SVG before committing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.feed.messages import Snapshot
from tests.console import scenes, trace_scenes
from tests.console.driving import LARGE, NARROW, WIDE, make_app, settled

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
SCENES: dict[str, Callable[[], Snapshot]] = {
    "empty": scenes.live,
    "list": scenes.live,
    "recording": lambda: scenes.live(recording=trace_scenes.recording(seconds=1200.0, until=scenes.NOW + 420)),
    "unwritten": lambda: scenes.live(recording=trace_scenes.unwritten()),
    "read-only": scenes.live,
    "replay": scenes.replayed,
}


pytestmark = pytest.mark.usefixtures("in_utc")


def pictured(snap_compare: Any, name: str, size: tuple[int, int], keys: str) -> bool:
    app, feed = make_app(SCENES[name](), read_only=name == "read-only", folder=Path(trace_scenes.HERE))
    if name == "empty":
        feed.traces = trace_scenes.none_yet()

    async def before(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        for key in keys.split():
            await pilot.press(key)
            await settled(pilot)

    return bool(snap_compare(app, terminal_size=size, run_before=before))


@SIZES
@pytest.mark.parametrize("name", SCENES)
def test_traces(snap_compare: Any, name: str, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, name, size, "6 down")


def test_traces_on_a_large_terminal(snap_compare: Any) -> None:
    assert pictured(snap_compare, "recording", LARGE, "6 down down")


@pytest.mark.parametrize("keys", ["6 r", "6 r tab end tab 3 d enter"], ids=["asks", "complains"])
def test_where_to_record(snap_compare: Any, keys: str) -> None:
    assert pictured(snap_compare, "list", NARROW, keys)


def test_ending_asks(snap_compare: Any) -> None:
    assert pictured(snap_compare, "recording", NARROW, "6 b")
