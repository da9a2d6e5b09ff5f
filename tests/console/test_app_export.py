"""`x`: where to, in what form, since when; nothing is replaced unasked, and the screen goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from console.app.commands.log import LoggedFeed
from console.app.exporting.choice import RANGES, Choice, ChoiceError, Range, choose, proposed
from console.app.exporting.dialog import ExportDialog
from console.app.frame.dialogs import ConfirmDialog
from console.feed.client import FeedError
from tests.console import scenes
from tests.console.driving import running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed

ALL, LAST = RANGES[0], RANGES[1]


def chosen(text: str, folder: Path, wanted: Range = ALL, *taken: str) -> Choice:
    return choose(text, folder, wanted, 1000.0, taken)


def test_a_path_begins_where_the_console_was_started_and_its_ending_is_the_form(tmp_path: Path) -> None:
    assert chosen("night.jsonl.zst", tmp_path, LAST) == (tmp_path / "night.jsonl.zst", 100.0, LAST, False)
    assert chosen(" ~/x.csv", tmp_path).path == Path.home() / "x.csv"
    assert chosen("folder", tmp_path).since is None
    (tmp_path / proposed(tmp_path, 1000.0).name).touch()
    assert not proposed(tmp_path, 1000.0).exists(), "what is proposed is free"


@pytest.mark.parametrize(
    ("text", "wanted", "words"),
    [
        ("", ALL, "write the path"),
        ("a\0b.csv", ALL, "write the path"),
        ("night.mp3", ALL, "the ending says the form"),
        ("night.csv", LAST, "holds everything"),
        ("folder", LAST, "holds everything"),
        ("none/night.csv", ALL, "there is no folder"),
        (f"{'a' * 300}/night.csv", ALL, "there is no folder"),
        ("own.duckdb", ALL, "is in use"),
        ("there.csv", ALL, "no plain file"),
        ("link.csv", ALL, "no plain file"),
    ],
    ids=["empty", "nul", "ending", "csv", "folder", "nowhere", "unseen", "own", "dir", "link"],
)
def test_what_cannot_be_written_is_said_before_anything_is_asked(
    tmp_path: Path, text: str, wanted: Range, words: str
) -> None:
    (tmp_path / "own.duckdb").touch()
    (tmp_path / "there.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ChoiceError, match=words):
        chosen(text, tmp_path, wanted, str(tmp_path / "own.duckdb"), str(tmp_path / "gone"))


class Writing(MemoryFeed):
    """Writes as a station does: under another name first, until `done` is set."""

    def __init__(self, *updates: Any) -> None:
        super().__init__(*updates)
        self.done = asyncio.Event()

    async def request(self, method: Any, params: Any, result_type: Any, timeout: float = 5.0) -> Any:
        answer = await super().request(method, params, result_type, timeout)
        if method == "export":
            out = Path(params.path)
            partial = out.with_name(f".{out.name}.partial-1")
            partial.write_bytes(b"x" * 12_000)
            await self.done.wait()
            os.replace(partial, out)
        return answer


async def test_it_is_written_while_the_screen_goes_on_and_said_with_its_size(tmp_path: Path) -> None:
    async with running(scenes.live(), folder=tmp_path) as (app, _, pilot):
        await pilot.press("2")
        await settled(pilot)
        feed = Writing()
        assert isinstance(app.feed, LoggedFeed)
        app.feed.plain = feed
        await pilot.press("x")
        assert "what this screen shows, 15 min" in text_on(app)
        app.screen.query_one(Input).value = "night [1].jsonl.zst"
        await pilot.press("tab", "end", "enter")
        await until(pilot, lambda: bool(feed.actions("export")))
        (asked,) = feed.actions("export")
        assert asked["path"] == str(tmp_path / "night [1].jsonl.zst")
        assert (asked["since"], asked["replace"]) == (scenes.NOW - 900.0, False)
        await until(pilot, lambda: "exporting 12 kB" in text_on(app))
        await pilot.press("1", "x")
        assert not isinstance(app.screen, ExportDialog)
        assert "still being exported" in [note.message for note in app._notifications][-1]
        feed.done.set()
        await until(pilot, lambda: "Exported what this screen shows, 15 min" in text_of_notes(app))
        assert f"{tmp_path}/night [1].jsonl.zst: 12 kB in " in text_of_notes(app)
        assert "exporting" not in text_on(app)


async def test_a_file_that_is_there_is_replaced_only_after_a_yes(tmp_path: Path) -> None:
    (tmp_path / "night.csv").write_text("kept")
    async with running(scenes.live(), folder=tmp_path) as (app, feed, pilot):
        for answer, asked in (("escape", 0), ("y", 1)):
            await pilot.press("x")
            app.screen.query_one(Input).value = "night.csv"
            await pilot.pause()
            assert "asks before it is replaced" in " ".join(text_on(app).replace("│", " ").split())
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
            await pilot.press(answer)
            await pilot.pause()
            assert len(feed.actions("export")) == asked
        assert feed.actions("export")[0]["replace"] is True


async def test_a_refusal_is_told_and_what_cannot_be_meant_stays_in_the_dialog(tmp_path: Path) -> None:
    async with running(scenes.live(), folder=tmp_path) as (app, feed, pilot):
        feed.refusal = FeedError("failed", "no space left: free some, then ask again")
        await pilot.press("x")
        app.screen.query_one(Input).value = "night.mp3"
        await pilot.press("enter")
        assert isinstance(app.screen, ExportDialog)
        assert "the ending says the form" in text_on(app)
        app.screen.query_one(Input).value = "night.csv"
        await pilot.press("enter")
        await until(pilot, lambda: "Nothing was exported: no space left" in text_of_notes(app))


async def test_a_read_only_console_writes_nothing_and_says_what_does(tmp_path: Path) -> None:
    async with running(scenes.live(), folder=tmp_path, read_only=True) as (app, _, pilot):
        await pilot.press("x")
        assert len(app.screen_stack) == 1
        assert "`specdeck export` does it from a shell" in text_of_notes(app)


async def test_a_replay_is_exported_whole_and_never_over_itself(tmp_path: Path) -> None:
    async with running(scenes.replayed(), folder=tmp_path, intent="replay") as (app, _, pilot):
        await pilot.press("x")
        assert "the whole record" in text_on(app)
        assert "the last" not in text_on(app)


def text_of_notes(app: Any) -> str:
    return "\n".join(note.message for note in app._notifications)
