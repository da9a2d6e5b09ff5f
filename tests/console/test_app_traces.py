"""The Traces screen: what is shown of traces and of a recording, and what its keys ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input

from console.app.application import SpecdeckApp
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import text_of, width_of
from console.app.frame.dialogs import ConfirmDialog
from console.app.frame.outcome import OpenTrace, Outcome
from console.app.live.screen import LiveScreen
from console.app.traces.length import LengthError, read_length
from console.app.traces.lines import trace_detail, trace_header, trace_row
from console.app.traces.record_dialog import RecordDialog, resolved
from console.app.traces.returning import Return
from console.app.traces.screen import TracesScreen
from console.app.traces.words import recording_lines
from console.feed.client import FeedError
from console.feed.traces import Traces, name_fault
from tests.console import scenes, trace_scenes
from tests.console.driving import NARROW, WIDE, running, settled, text_on, until
from tests.console.trace_scenes import FOLDER, NOW, recording, trace, unwritten

HOSTILE_NAME = "a\x1b[2J\u202eb.jsonl.zst"


def screen_of(app: SpecdeckApp) -> TracesScreen:
    assert isinstance(app.screen, TracesScreen)
    return app.screen


def selected(app: SpecdeckApp) -> str:
    look = screen_of(app).selected
    assert look is not None
    return Path(look.path).name


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


# Lines


@pytest.mark.parametrize("width", [60, 79, 119, 199])
def test_lines_fit_whatever_is_in_a_file(width: int) -> None:
    hostile = trace(
        HOSTILE_NAME, target=scenes.HOSTILE * 9, workloads=[scenes.HOSTILE] * 8, notes=["x\x07" * 300], text=True,
        rows=10**15, bytes=10**18,
    )  # fmt: skip
    broken = trace("b" * 300, state="broken", reason="line 3: \x1b]0;x\x07" * 40)
    for look in [hostile, broken, *trace_scenes.found().traces]:
        for line in [trace_row(look, NOW, width), trace_header(width - 1), *trace_detail(look, width)]:
            assert width_of(line) <= width
            assert not any(ord(char) < 32 or char == "\u202e" for char in text_of(line))


@pytest.mark.parametrize("width", [60, 79, 199])
@pytest.mark.parametrize(
    "view",
    [
        recording(),
        recording(seconds=1200.0, until=NOW + 420),
        recording(path="/" + "long/" * 90 + "x.jsonl"),
        replace(unwritten(), note="\x1b" + unwritten().note * 5),
        recording(state="writing", ended=NOW),
        recording(state="written", ended=NOW - 60, note="it begins later"),
    ],
    ids=["on", "timed", "long", "unwritten", "writing", "written"],
)
def test_a_recording_fits_its_panel(view: Any, width: int) -> None:
    lines = recording_lines(view, NOW, width)
    assert len(lines) <= 5
    for line in lines:
        assert width_of(line) <= width
        assert "\x1b" not in text_of(line)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), ("  ", None), ("30s", 30), ("10m", 600), ("10 min", 600), ("2h", 7200), ("90", 90)],
)
def test_lengths_that_can_be_meant(text: str, seconds: float | None) -> None:
    assert read_length(text) == seconds


@pytest.mark.parametrize("text", ["soon", "-5m", "0", "25h", "1d1h", "nan", "1e9", "٣m", "9" * 400])
def test_lengths_that_can_not(text: str) -> None:
    with pytest.raises(LengthError):
        read_length(text)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("run", "end it in .jsonl.zst"),
        ("run.csv", "end it in .jsonl.zst"),
        ("run.zst", "end it in .jsonl.zst"),
        (".jsonl", "end it in .jsonl.zst"),
        ("", "end it in .jsonl.zst"),
        ("a\nb.jsonl", "can't be printed"),
        ("\udcff.jsonl", "can't be printed"),
        ("x" * 250 + ".jsonl", "at most 200"),
        ("ü" * 120 + ".jsonl", "at most 200"),
    ],
)
def test_names_that_no_recording_can_have(name: str, why: str) -> None:
    assert why in (name_fault(f"/somewhere/{name}") or "")


def test_a_bare_name_goes_into_the_folder_and_a_path_is_what_the_shell_would_make_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert resolved(" a.jsonl ", FOLDER, "/here") == Path(FOLDER, "a.jsonl")
    assert resolved("./a.jsonl", FOLDER, "/here") == Path("/here/a.jsonl")
    assert resolved("~/a.jsonl", FOLDER, None) == Path("/home/ada/a.jsonl")
    assert resolved("/x/a.jsonl", FOLDER, None) == Path("/x/a.jsonl")
    for nothing in ("", "  ", "~nobody-of-that-name/a.jsonl"):
        with pytest.raises(ValueError, match=r"write a name|home"):
            resolved(nothing, FOLDER, None)


# The list


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_six_shows_what_is_there(size: tuple[int, int]) -> None:
    async with running(scenes.live(), size=size, folder=Path(trace_scenes.HERE)) as (app, feed, pilot):
        await press(pilot, "6")
        shown = text_on(app)
        assert "traces · 7 traces · 1 broken · 2 other files left out" in shown
        assert "night-with-prompts" in shown
        assert " TEXT " in shown
        assert "broken: a Parquet file" in shown
        assert "process 4301 has it open" in shown
        assert feed.actions("traces")[0]["here"] == trace_scenes.HERE


async def test_the_detail_follows_the_cursor_and_copying_gives_the_path() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await press(pilot, "6", "down")
        assert "it holds prompts and answers" in text_on(app)
        assert "412,345 rows" in text_on(app)
        assert screen_of(app).copied() == f"{FOLDER}/night-with-prompts.jsonl.zst"
        await press(pilot, "down", "down")
        assert "broken: a Parquet file that can't be read: footer missing" in text_on(app)
        await press(pilot, "end")
        assert selected(app) == "demo.jsonl.zst"


async def test_tab_goes_from_place_to_place_and_a_click_marks_a_line() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await press(pilot, "6", "tab")
        assert selected(app) == "run.duckdb"
        await press(pilot, "tab")
        assert selected(app) == "demo.jsonl.zst"
        await press(pilot, "tab")
        assert selected(app) == "new.jsonl"
        await pilot.click("#trace-list", offset=(10, 2))
        assert selected(app) == "2026-09-21_1210.parquet"


async def test_escape_goes_back_to_live() -> None:
    async with running(scenes.live()) as (app, _, pilot):
        await press(pilot, "6", "escape")
        assert isinstance(app.screen, LiveScreen)


async def test_the_cursor_stays_on_its_trace_when_another_comes() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await press(pilot, "6", "down")
        more = trace("newest.jsonl.zst", modified=NOW)
        feed.traces = replace(feed.traces, traces=[more, *feed.traces.traces])
        feed.say(scenes.live(number=2, recording=recording(state="written", ended=NOW)))
        await until(pilot, lambda: "newest.jsonl.zst" in text_on(app))
        assert selected(app) == "night-with-prompts.jsonl.zst"


async def test_one_whose_beginning_alone_is_known_is_asked_for_whole_when_it_is_marked() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await press(pilot, "6", "tab", "down")
        assert selected(app) == "huge.jsonl.zst"
        await until(pilot, lambda: feed.actions("traces")[-1]["whole"] == f"{trace_scenes.HERE}/huge.jsonl.zst")


async def test_while_files_are_looked_into_the_list_is_asked_for_again() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.traces = replace(feed.traces, looking=True)
        await press(pilot, "6")
        assert "looking into them" in text_on(app)
        await until(pilot, lambda: len(feed.actions("traces")) >= 2)


@pytest.mark.parametrize("read_only", [False, True], ids=["live", "read-only"])
async def test_an_empty_list_says_what_would_be_there_and_how_it_comes(read_only: bool) -> None:
    async with running(scenes.live(), read_only=read_only) as (app, feed, pilot):
        feed.traces = trace_scenes.none_yet()
        await press(pilot, "6")
        shown = text_on(app)
        assert "No trace yet." in shown
        assert ("r records what happens" in shown) is not read_only
        assert "specdeck replay FILE" in shown
        await press(pilot, "enter")
        assert any("No trace is marked" in note.message for note in app._notifications)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FeedError("unknown_method", "no method 'traces'"), "older than the console"),
        (FeedError("deadline", "the station did not answer"), "can't be listed: the station did not answer"),
    ],
)
async def test_a_station_that_can_not_tell_leaves_the_console_usable(error: FeedError, said: str) -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.no_traces = error
        await press(pilot, "6")
        assert said in text_on(app).replace("\n", " ")
        await press(pilot, "r", "1")
        assert isinstance(app.screen, LiveScreen)


# Opening


async def test_while_the_picture_is_held_it_says_why_no_list_comes() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("p", "6")
        await until(pilot, lambda: "The picture is held" in text_on(app))
        await pilot.press("r")
        assert isinstance(app.screen, TracesScreen)
        assert not feed.actions("traces")
        assert any("p lets it go on" in note.message for note in app._notifications)
        await press(pilot, "p")
        await until(pilot, lambda: "night-with-prompts" in text_on(app))


async def test_enter_ends_the_console_with_the_trace_that_is_to_be_shown() -> None:
    async with running(scenes.live(), read_only=True) as (app, _, pilot):
        await press(pilot, "6", "down")
        await pilot.press("enter")
        await pilot.pause()
    assert app.return_value == OpenTrace(Path(FOLDER, "night-with-prompts.jsonl.zst"))


@pytest.mark.parametrize(("downs", "why"), [(3, "broken: a Parquet file"), (4, "process 4301 has it open")])
async def test_what_can_not_be_opened_is_said(downs: int, why: str) -> None:
    async with running(scenes.live(), size=(200, 50)) as (app, _, pilot):
        await press(pilot, "6", *["down"] * downs, "enter")
        assert any(why in note.message for note in app._notifications)
        assert app.return_value is None


async def test_a_replay_opens_another_trace_and_records_none() -> None:
    async with running(scenes.replayed(), intent="replay") as (app, feed, pilot):
        await press(pilot, "6", "r", "b")
        assert not feed.actions("recording_begin")
        assert "record" not in app.screen.query_one("#keys").text
        await press(pilot, "down")
        await pilot.press("enter")
        await pilot.pause()
    assert app.return_value == OpenTrace(Path(FOLDER, "night-with-prompts.jsonl.zst"))


async def test_leaving_a_replay_that_a_console_opened_goes_back_to_it() -> None:
    async with running(scenes.replayed(), intent="replay", back=True) as (app, _, pilot):
        await pilot.press("q")
        await pilot.pause()
    assert app.return_value is Outcome.BACK


async def test_coming_back_the_trace_is_marked_and_why_it_was_not_shown_is_said() -> None:
    returned = Return(f"{FOLDER}/2026-09-21_1210.parquet", "nothing is recorded in it")
    async with running(scenes.live(), returned=returned) as (app, _, pilot):
        await until(pilot, lambda: isinstance(app.screen, TracesScreen) and screen_of(app).selected is not None)
        assert selected(app) == "2026-09-21_1210.parquet"
        assert any("nothing is recorded in it" in note.message for note in app._notifications)


# Recording


async def test_r_proposes_a_name_and_records_there() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await press(pilot, "6", "r")
        assert isinstance(app.screen, RecordDialog)
        name = app.screen.query_one("#record-name", Input).value
        assert name.endswith(".jsonl.zst")
        await press(pilot, "enter")
        await until(pilot, lambda: bool(feed.actions("recording_begin")))
        (sent,) = feed.actions("recording_begin")
        assert sent == {"path": f"{FOLDER}/{name}", "seconds": None, "replace": False}


async def test_form_and_length_are_what_is_sent() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await press(pilot, "6", "r", "tab", "end")
        assert app.screen.query_one("#record-name", Input).value.endswith(".parquet")
        await press(pilot, "tab", *"10m", "enter")
        await until(pilot, lambda: bool(feed.actions("recording_begin")))
        (sent,) = feed.actions("recording_begin")
        assert (sent["path"][-8:], sent["seconds"]) == (".parquet", 600.0)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "write a name"),
        ("run", "end it in"),
        ("/tmp/", "end it in"),
        ("/no/such/place/a.jsonl", "there is no folder"),
        (f"/{'a' * 300}/a.jsonl", "there is no folder"),  # as a folder that may not be looked into: stat fails
    ],
    ids=["empty", "ending", "folder", "nowhere", "unseen"],
)
async def test_a_name_that_can_not_be_meant_stays_with_its_complaint(typed: str, why: str) -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await press(pilot, "6", "r")
        app.screen.query_one("#record-name", Input).value = typed
        await press(pilot, "enter")
        assert isinstance(app.screen, RecordDialog)
        assert why in text_on(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, TracesScreen)
        assert not feed.actions("recording_begin")


async def test_a_folder_is_no_file_and_a_file_that_is_there_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    there = tmp_path / "there.jsonl"
    there.write_text("mine")
    async with running(scenes.live()) as (app, feed, pilot):
        await press(pilot, "6", "r")
        name = app.screen.query_one("#record-name", Input)
        name.value = str(tmp_path / "folder.jsonl")
        await press(pilot, "enter")
        assert "is a folder" in text_on(app).replace("\n", "")
        name.value = str(there)
        await press(pilot, "enter")
        assert isinstance(app.screen, ConfirmDialog)
        assert "4 B" in text_on(app)
        await press(pilot, "escape")
        assert not feed.actions("recording_begin")
        await press(pilot, "r")
        app.screen.query_one("#record-name", Input).value = str(there)
        await press(pilot, "enter", "y")
        await until(pilot, lambda: bool(feed.actions("recording_begin")))
        assert feed.actions("recording_begin")[0]["replace"] is True


async def test_what_the_station_refuses_is_said() -> None:
    async with running(scenes.live(), size=(200, 50)) as (app, feed, pilot):
        feed.refusal = FeedError("refused", "the folder can't be written to")
        await press(pilot, "6", "r", "enter")
        await until(pilot, lambda: any("can't be written to" in note.message for note in app._notifications))


async def test_a_recording_is_never_out_of_sight_and_b_ends_it_after_a_question() -> None:
    async with running(scenes.live(recording=recording())) as (app, feed, pilot):
        assert "● rec 13m" in text_on(app).splitlines()[0]
        await press(pilot, "6")
        shown = text_on(app)
        for part in ("recording", "13 min", "412,345 rows", "about 3.7 MB", "2026-09-21_1402.jsonl.zst", "by operator"):
            assert part in shown
        await press(pilot, "r")
        assert any("goes on already" in note.message for note in app._notifications)
        await press(pilot, "b", "escape")
        assert not feed.actions("recording_end")
        await press(pilot, "b", "y")
        await until(pilot, lambda: bool(feed.actions("recording_end")))
        assert feed.actions("recording_end") == [{"id": "r1", "path": None, "replace": False}]


async def test_one_that_could_not_be_written_is_written_where_one_says() -> None:
    async with running(scenes.live(recording=unwritten())) as (app, feed, pilot):
        assert "rec not written" in text_on(app).splitlines()[0]
        await press(pilot, "6")
        assert "nothing is lost" in text_on(app).replace("\n", " ")
        await press(pilot, "b")
        assert isinstance(app.screen, RecordDialog)
        assert "No space left" in text_on(app)
        app.screen.query_one("#record-name", Input).value = "elsewhere.jsonl"
        await press(pilot, "tab", "tab", "enter")
        await until(pilot, lambda: bool(feed.actions("recording_end")))
        assert feed.actions("recording_end")[0]["path"] == f"{FOLDER}/elsewhere.jsonl"


async def test_without_a_recording_b_says_so_and_a_read_only_console_changes_nothing() -> None:
    async with running(scenes.live(recording=recording()), read_only=True) as (app, feed, pilot):
        await press(pilot, "6", "b", "r")
        assert not feed.actions("recording_end")
        assert any("read-only" in note.message for note in app._notifications)
        assert "end recording" not in app.screen.query_one("#keys").text
    async with running(scenes.live()) as (app, _, pilot):
        await press(pilot, "6", "b")
        assert any("r begins one" in note.message for note in app._notifications)


async def test_a_found_list_without_a_place_still_marks_its_first_line() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.traces = Traces(traces=[trace("a.jsonl")], places=[], folder=FOLDER)
        await press(pilot, "6", "tab")
        assert app.screen.query_one(PickList).cursor == f"{FOLDER}/a.jsonl"
