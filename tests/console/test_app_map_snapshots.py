"""Pictures of the Map screen and its dialogs.

Update with `pytest tests/console/test_app_map_snapshots.py --snapshot-update` and look at the SVG before committing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from console.app.rehearsal import desk as rehearsal_desk
from console.feed.messages import Snapshot
from tests.console import map_scenes
from tests.console.driving import NARROW, WIDE, make_app, settled

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
SCENES: dict[str, Callable[[], Snapshot]] = {
    "data": map_scenes.mapped,
    "stale": lambda: map_scenes.mapped(map_scenes.STALE),
    "rehearsal": map_scenes.rehearsing,
}


pytestmark = pytest.mark.usefixtures("in_utc")


@pytest.fixture(autouse=True)
def _plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal_desk, "built_in_plans", lambda: map_scenes.PLANS)


def pictured(snap_compare: Any, scene: Snapshot, size: tuple[int, int], keys: str) -> bool:
    app, feed = make_app(scene)
    feed.map = map_scenes.operating_map() if scene.map is not None else None

    async def before(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        for key in keys.split():
            await pilot.press(key)
            await settled(pilot)

    return bool(snap_compare(app, terminal_size=size, run_before=before))


@SIZES
@pytest.mark.parametrize("name", SCENES)
def test_map(snap_compare: Any, name: str, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, SCENES[name](), size, "5 down right")


@pytest.mark.parametrize("keys", ["5 r down", "5 r down enter", "5 d"], ids=["plans", "start", "deploy"])
def test_map_asks(snap_compare: Any, keys: str) -> None:
    assert pictured(snap_compare, map_scenes.mapped(), NARROW, keys)
