"""What is found out about trace files: where they are, what is in them, and that no file can do harm by being there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from console.cli.root import root
from console.feed.traces import TraceLook, Traces, TracesParams
from console.looking import folders, looker
from console.looking.folders import listed
from console.looking.look import look
from console.looking.looker import Looker
from engine.records import Passage, TextRecord
from store.database import Store
from store.trace import TraceWriter
from store.trace.texts import text_mark
from tests.store.builders import engine

DEMO = Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst"
NOW = 1_790_000_000.0


def file(path: Path, place: Any = "here") -> TraceLook:
    stat = path.stat()
    return TraceLook(path=str(path), place=place, bytes=stat.st_size, modified=stat.st_mtime)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its `traces` are those of the operator."""
    monkeypatch.setenv("SPECDECK_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data" / "traces").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    return tmp_path


def named(path: Path, seconds: float = 0.0) -> Path:
    path.write_bytes(DEMO.read_bytes())
    os.utime(path, (NOW + seconds, NOW + seconds))
    return path


# Where


def test_the_newest_come_first_the_samples_last_and_each_directory_once(home: Path) -> None:
    named(home / "data" / "traces" / "old.jsonl.zst")
    named(home / "here" / "new.parquet", 5)
    named(home / "data" / "traces" / "newest.zip", 9)
    found = listed(str(home / "here"), DEMO.parent)
    assert [Path(one.path).name for one in found.files][:4] == [
        "newest.zip",
        "new.parquet",
        "old.jsonl.zst",
        "demo.jsonl.zst",
    ]
    assert {one.place for one in found.files[3:]} == {"samples"}
    again = listed(str(home / "data" / "traces"), home / "data" / "traces")
    assert [one.place for one in again.places] == ["data"]


def test_what_can_be_no_trace_or_not_be_named_is_left_alone(home: Path) -> None:
    here = home / "here"
    for name in ("notes.txt", ".hidden.jsonl", "x.json"):
        (here / name).touch()
    (here / "folder.jsonl").mkdir()
    (here / "nowhere.jsonl").symlink_to(here / "gone")
    os.mkfifo(here / "pipe.jsonl")
    (here / "a\x1b[2J.jsonl").touch()
    (here / os.fsdecode(b"\xff.jsonl")).touch()
    found = listed(str(here), None)
    assert found.files == []
    assert [(one.place, one.left_out) for one in found.places] == [("data", 0), ("here", 2)]


def test_a_directory_with_very_many_files_shows_the_newest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 3)
    for number in range(5):
        named(home / "here" / f"{number}.jsonl.zst", number)
    found = listed(str(home / "here"), None)
    assert [Path(one.path).name[0] for one in found.files] == ["4", "3", "2"]
    assert found.places[1].left_out == 2


def test_a_place_that_can_not_be_looked_into_is_told(home: Path) -> None:
    found = listed(str(home / "gone"), home / "data" / "nothing")
    assert [(one.place, bool(one.error)) for one in found.places] == [
        ("data", False),
        ("samples", True),
        ("here", True),
    ]
    (home / "file").touch()
    assert listed(str(home / "file"), None).places[1].error == "Not a directory"


# What


def test_the_beginning_tells_of_the_engine_and_the_whole_of_its_rows(tmp_path: Path) -> None:
    begun = look(file(named(tmp_path / "demo.jsonl.zst")), False)
    assert begun is not None
    assert (begun.state, begun.form, begun.rows, begun.text) == ("begun", "zst", None, False)
    assert begun.target.startswith("SmolLM2-135M-Instruct@")
    whole = look(begun, True)
    assert whole is not None
    assert (whole.state, whole.rows, whole.sequences) == ("known", 8281, 201)
    assert whole.start == pytest.approx(begun.start, abs=0.01)
    assert whole.end is not None
    assert 180 < whole.end - (whole.start or 0) < 190


def test_text_is_seen_at_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    with TraceWriter(path, private=True) as writer:
        writer.write(text_mark(NOW, NOW + 1, 1, {}))
        writer.write(engine(NOW, v=2))
        writer.write(TextRecord("e0", NOW + 1, "r1", [Passage("x")], []))
    for whole in (False, True):
        seen = look(file(path), whole)
        assert seen is not None
        assert seen.text


def damaged(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_a_file_of_ours_that_is_damaged_is_broken_with_its_reason(tmp_path: Path) -> None:
    demo = DEMO.read_bytes()
    with TraceWriter(tmp_path / "good.jsonl") as writer:
        writer.write(engine(NOW))
    good = (tmp_path / "good.jsonl").read_bytes()
    for path, why in (
        (damaged(tmp_path, "a.jsonl.zst", demo[:40] + b"\x00" * 99 + demo[139:]), "compression is damaged"),
        (damaged(tmp_path, "b.jsonl", good + b'{"type":"step"}\n'), "line 2: step record"),
        (damaged(tmp_path, "c.parquet", b"PAR1nothing"), "cut off or damaged"),
        (damaged(tmp_path, "d.zip", b"PK\x03\x04nothing"), "the ZIP can't be read"),
    ):
        seen = look(file(path), False)
        assert seen is not None, path
        assert (seen.state, why in seen.reason) == ("broken", True), seen
        assert str(tmp_path) not in seen.reason


def test_what_is_something_else_is_left_out_where_one_works_and_shown_among_the_traces(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    for path in (
        damaged(tmp_path, "data.jsonl", b'{"a": 1}\n'), damaged(tmp_path, "empty.jsonl", b""),
        damaged(tmp_path, "text.jsonl", b"hello\nthere\n"), tmp_path / "other.zip",
    ):  # fmt: skip
        assert look(file(path), False) is None, path
        shown = look(file(path, "data"), False)
        assert shown is not None
        assert shown.state == "broken"


def test_a_store_is_opened_only_when_it_is_asked_for_and_one_that_is_held_says_by_whom(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    with Store.open(path):
        begun = look(file(path), False)
        assert begun is not None
        assert (begun.state, begun.form) == ("begun", "store")
        held = look(begun, True)
        assert held is not None
        assert (held.state, f"process {os.getpid()} has it open") == ("held", held.reason)
    free = look(begun, True)
    assert free is not None
    assert (free.state, free.rows, free.start) == ("known", 0, None)


@given(st.binary(max_size=300), st.sampled_from([b"", b"(\xb5/\xfd", b"PK\x03\x04", b"PAR1", b"12345678DUCK", b"{"]))
def test_whatever_is_in_a_file_it_is_told_and_never_raised(content: bytes, start: bytes) -> None:
    path = Path(os.environ["SPECDECK_RUNTIME_DIR"] + "-looked")
    path.write_bytes(start + content)
    for whole in (False, True):
        for place in ("here", "data"):
            seen = look(file(path, place), whole)
            assert seen is None or seen.state in ("broken", "begun", "held")


# The process beside it


async def settled(looker: Looker, params: TracesParams, done: Callable[[Traces], bool]) -> Traces:
    for _ in range(600):
        found = await looker.traces(params)
        if done(found):
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"never: {found}")


def test_it_is_found_out_bit_by_bit_and_once_for_each_file(home: Path) -> None:
    named(home / "here" / "a.jsonl.zst")
    (home / "here" / "foreign.jsonl").write_text('{"a": 1}\n')
    params = TracesParams(here=str(home / "here"))

    async def look_around() -> None:
        looks = Looker(samples=lambda: None)
        first = await looks.traces(params)
        assert first.looking
        assert {one.state for one in first.traces} == {"unread"}
        last = await settled(looks, params, lambda found: not found.looking)
        assert [(Path(one.path).name, one.state, one.rows) for one in last.traces] == [("a.jsonl.zst", "known", 8281)]
        assert [one.left_out for one in last.places] == [0, 1]
        looks._command = ["/nothing/is/started/any/more"]
        assert not (await looks.traces(params)).looking
        os.utime(home / "here" / "a.jsonl.zst", (NOW + 9, NOW + 9))
        changed = await looks.traces(params)
        assert (changed.looking, changed.traces[0].modified) == (False, NOW + 9), "one that keeps changing has a rest"
        await looks.close()

    asyncio.run(look_around())


def test_large_files_are_read_whole_only_when_asked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = named(home / "here" / "a.jsonl.zst")
    monkeypatch.setattr(looker, "SMALL_BYTES", {})

    async def look_around() -> None:
        looks = Looker(samples=lambda: None)
        here = str(home / "here")
        await settled(looks, TracesParams(here=here), lambda found: not found.looking)
        (begun,) = (await looks.traces(TracesParams(here=here))).traces
        assert (begun.state, begun.rows) == ("begun", None)
        asked = TracesParams(here=here, whole=str(path))
        assert (await settled(looks, asked, lambda found: not found.looking)).traces[0].rows == 8281
        monkeypatch.setattr(looker, "WANTED_BYTES", 10)
        larger = Looker(samples=lambda: None)
        huge = (await settled(larger, asked, lambda found: not found.looking)).traces[0]
        assert (huge.state, huge.notes) == ("begun", [looker.TOO_LARGE])
        await looks.close()
        await larger.close()

    asyncio.run(look_around())


def test_a_file_that_ends_its_reader_is_broken_and_the_others_are_read(home: Path) -> None:
    """The stand-in dies at the first file whose name says so, as a reader may over a damaged one."""
    for name in ("a.jsonl.zst", "deadly.jsonl.zst", "z.jsonl.zst"):
        named(home / "here" / name)
    script = (
        "import sys, msgspec\n"
        "for file, whole in msgspec.json.decode(sys.stdin.buffer.readline()):\n"
        "    if 'deadly' in file['path']: sys.exit(9)\n"
        "    print(msgspec.json.encode({**file, 'state': 'known'}).decode(), flush=True)\n"
    )

    async def look_around() -> None:
        looks = Looker([sys.executable, "-c", script], samples=lambda: None)
        found = await settled(looks, TracesParams(here=str(home / "here")), lambda found: not found.looking)
        assert [one.state for one in found.traces] == ["known", "broken", "known"]
        await looks.close()

    asyncio.run(look_around())


def test_a_reader_that_can_not_be_started_harms_nothing(home: Path) -> None:
    named(home / "here" / "a.jsonl.zst")

    async def look_around() -> None:
        looks = Looker(["/no/such/program"], samples=lambda: None)
        params = TracesParams(here=str(home / "here"))
        for _ in range(3):
            assert [one.state for one in (await looks.traces(params)).traces] == ["unread"]
            await asyncio.sleep(0.02)
        await looks.close()

    asyncio.run(look_around())


def test_closing_ends_the_reader(home: Path) -> None:
    named(home / "here" / "a.jsonl.zst")

    async def look_around() -> None:
        looks = Looker([sys.executable, "-c", "import time; time.sleep(60)"], samples=lambda: None)
        await looks.traces(TracesParams(here=str(home / "here")))
        await asyncio.sleep(0.1)
        await asyncio.wait_for(looks.close(), 5)

    asyncio.run(look_around())


def test_the_list_on_the_command_line_is_the_same(home: Path) -> None:
    named(home / "data" / "traces" / "mine.jsonl.zst")
    damaged(home / "here", "broken.jsonl.zst", b"(\xb5/\xfdnothing")
    damaged(home / "here", "foreign.jsonl", b'{"a": 1}\n')
    result = CliRunner().invoke(root, ["trace", "list", str(home / "here"), "--json"])
    assert result.exit_code == 0
    found = {Path(one["path"]).name: one for one in json.loads(result.stdout)}
    assert (found["mine.jsonl.zst"]["rows"], found["broken.jsonl.zst"]["state"]) == (8281, "broken")
    assert "foreign.jsonl" not in found
    text = CliRunner().invoke(root, ["trace", "list", str(home / "here")]).stdout
    assert "8,281 rows" in text
    assert "broken: " in text
