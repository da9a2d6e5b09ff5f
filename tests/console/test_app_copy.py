"""`y`: what the cursor is on, as text on the clipboard; whatever it holds, it is no more than text."""

from __future__ import annotations

from msgspec.structs import replace

from console.app.frame.copying import CUT, LONGEST, copyable
from tests.console import map_scenes, scenes
from tests.console.driving import running, settled

COPIES = {
    "live": ("y", ("workload: code", "window: 5 min", "n: 118 sequences", "α: 0.5", "speedup: 1.41")),
    "bucket": ("2 y", ("code 0-512", "last 15 min", "α ", "K executed ", "experienced ")),
    "workload": ("3 y", ("code",)),
    "history": ("tab y", ("operator: mode static:2 → static:4",)),
    "alert": ("4 y", ("warn, firing", "how sure", "47.1 %")),
    "cell": ("5 y", ("is best", "arm", "plan ")),
    "log": ("7 y", ("INFO",)),
    "help": ("question_mark y", ("Everywhere", "Signs")),
    "explained": ("escape 1 enter y", ("Acceptance rate α", "bucket", "code 0-512", "specdeck sql")),
}


async def test_each_screen_gives_what_its_cursor_is_on() -> None:
    scene = replace(map_scenes.mapped(), alerts=scenes.drifting(), workloads=scenes.workloads())
    async with running(scene) as (app, feed, pilot):
        feed.map = map_scenes.operating_map()
        for name, (keys, words) in COPIES.items():
            app.clear_notifications()
            for key in keys.split():
                await pilot.press(key)
                await settled(pilot)
            for word in words:
                assert word in app.clipboard, name
            assert "\x1b" not in app.clipboard
            (note,) = app._notifications
            assert note.message.startswith("Copied "), name
            assert ("set-clipboard on" in note.message) == (name == "live"), "said once"


async def test_where_there_is_nothing_to_copy_that_is_said() -> None:
    async with running(scenes.no_bucket()) as (app, _, pilot):
        await pilot.press("y")
        await pilot.pause()
        assert app.clipboard == ""
        assert [note.message for note in app._notifications] == ["There is nothing to copy here."]


async def test_a_hostile_workload_brings_no_escape_and_no_line_of_its_own() -> None:
    hostile = "x\x1b]52;c;ZXZpbA==\x07\r\nrm -rf ~\n"
    first = scenes.live().buckets[0]
    bucket = replace(first, key=replace(first.key, workload=hostile))
    async with running(scenes.live(buckets=[bucket])) as (app, _, pilot):
        await pilot.press("y")
        await pilot.pause()
        assert app.clipboard.split("\n")[0] == "workload: x·]52;c;ZXZpbA==···rm -rf ~·"


def test_what_is_too_long_for_a_terminal_is_cut_at_the_end_of_a_line() -> None:
    text = copyable("\n".join(f"{number} {'ä' * 90}" for number in range(1000)))
    assert len(text.encode()) <= LONGEST
    assert text.endswith(f"ä\n{CUT}")
    assert copyable("one  \n\n") == "one"
