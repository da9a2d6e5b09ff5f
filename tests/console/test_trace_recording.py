"""A recording that the station makes: begun and ended by any console, outliving consoles and station, never lost."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from console.cli.root import root
from console.cli.station import ask
from console.feed.messages import RecordingView, Snapshot
from console.feed.server import FeedError
from console.feed.traces import RecordingBegin, RecordingEnd, Traces, TracesParams
from console.looking.folders import traces_folder
from console.station import recording_file, trace_recording
from console.station.recorder import Received, Recorder, open_recorder
from console.station.trace_recording import KEPT, TraceRecording, recording_begin, recording_end
from engine.frames import Announcement, Frame
from engine.records import StateRecord, StepRecord
from store.trace import read_records, trace_info
from tests.console.station_harness import StationUnderTest
from tests.store import station_days
from tests.store.small_disk import SmallDisk, small_disk

START = time.time() // 300 * 300 - 600
"""Lately: the store keeps nothing that is old."""


class Days:
    """A recorder that was fed a few minutes of a day, and the recording over it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.told: list[str] = []
        self.recorder: Recorder = open_recorder(place / "store.duckdb", lambda kind, text: None)
        self.recorder.start()
        self._messages = iter(list(station_days.day(8)))
        self.now = time.time()
        self.recording = self.another()

    def another(self) -> TraceRecording:
        """As the next station makes it."""
        self.recorder.flush_and_wait()
        return TraceRecording(self.recorder, lambda kind, text: self.told.append(text), lambda: self.now)

    def pass_until(self, seconds: float) -> None:
        for ts, message in self._messages:
            if isinstance(message, Frame | Announcement):
                self.recorder.put(Received(message, ts))
            if ts >= START + seconds:
                break
        assert self.recorder.flush_and_wait()

    @property
    def station(self) -> Any:
        return SimpleNamespace(recorder=self.recorder, recording=self.recording, control=object())

    async def begin(self, path: Path | str, **params: Any) -> RecordingView:
        return await recording_begin(self.station, RecordingBegin(path=str(path), **params), "ada")

    async def end(self, **params: Any) -> RecordingView | None:
        await recording_end(self.station, RecordingEnd(**params), "bob")
        return await self.written()

    async def written(self) -> RecordingView | None:
        assert self.recording._writing is not None
        await self.recording._writing
        return self.recording.view()


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Days]:
    monkeypatch.setattr(station_days, "START", START)
    days = Days(tmp_path)
    days.pass_until(120)
    yield days
    days.recorder.stop()


def steps_in(path: Path) -> list[StepRecord]:
    return [record for record in read_records(path) if isinstance(record, StepRecord)]


@pytest.mark.parametrize("name", ["run.jsonl.zst", "run.jsonl", "run.parquet"])
def test_the_file_holds_what_was_recorded_from_its_beginning_on(days: Days, name: str) -> None:
    async def record() -> None:
        begun = await days.begin(days.place / name)
        assert (begun.state, begun.actor) == ("on", "ada")
        assert not (days.place / name).exists(), "nothing is written before its end"
        days.pass_until(200)
        view = days.recording.view()
        assert view is not None
        assert view.rows > begun.rows
        done = await days.end()
        assert done is not None
        info = trace_info(days.place / name)
        assert (done.state, done.rows, done.bytes) == ("written", info.rows, info.bytes)
        assert info.records["state"] == 1
        first, last = steps_in(days.place / name)[:: info.steps - 1]
        assert begun.since <= first.ts < START + 120
        assert last.ts > START + 190
        assert done.note == ""

    asyncio.run(record())
    assert [part.name for part in days.place.iterdir() if name.split(".")[0] in part.name] == [name]


def test_two_do_not_go_on_at_once_and_another_than_was_meant_is_not_ended(days: Days) -> None:
    async def record() -> None:
        one, two = days.place / "one.jsonl", days.place / "two.jsonl"
        first, second = await asyncio.gather(days.begin(one), days.begin(two), return_exceptions=True)
        assert isinstance(first, RecordingView)
        assert isinstance(second, FeedError)
        with pytest.raises(FeedError, match=r"goes on already, into .*one.jsonl, by ada"):
            await days.begin(two)
        with pytest.raises(FeedError, match="that recording is over"):
            await recording_end(days.station, RecordingEnd(id="other"), "bob")
        await days.end(id=first.id)
        with pytest.raises(FeedError, match="no recording goes on"):
            await recording_end(days.station, RecordingEnd(), "bob")

    asyncio.run(record())


NO_PLACES = {
    "run": "end it in .jsonl.zst",
    "run.csv": "end it in .jsonl.zst",
    "folder.jsonl": "is a folder",
    "there.jsonl": "is there already",
    "no/such/run.jsonl": "there is no folder",
    "there.jsonl/run.jsonl": "there is no folder",
    "pipe.jsonl": "a pipe or a device",
    "a\x1b[2J.jsonl": "can't be printed",
    "x" * 230 + ".jsonl": "at most 200",
}


def test_what_no_recording_can_be_written_to_is_refused_before_it_begins(days: Days) -> None:
    (days.place / "folder.jsonl").mkdir()
    (days.place / "there.jsonl").touch()
    os.mkfifo(days.place / "pipe.jsonl")
    for name, why in NO_PLACES.items():
        with pytest.raises(FeedError, match=why):
            asyncio.run(days.begin(days.place / name))
    with pytest.raises(FeedError, match="absolute path"):
        asyncio.run(days.begin("run.jsonl"))
    assert days.recording.view() is None


def test_the_folder_of_recordings_is_made_when_it_is_needed_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDECK_DATA_DIR", str(tmp_path))
    recording_file.check_target(str(traces_folder() / "a.jsonl"), replace=False)
    assert traces_folder().stat().st_mode & 0o777 == 0o700


def test_a_file_is_replaced_only_where_that_was_asked_and_only_at_the_end(days: Days) -> None:
    async def record() -> None:
        there = days.place / "there.jsonl"
        there.write_text("mine")
        await days.begin(there, replace=True)
        days.pass_until(150)
        assert there.read_text() == "mine"
        done = await days.end()
        assert done is not None
        assert done.state == "written"
        assert trace_info(there).rows == done.rows

    asyncio.run(record())


def test_one_that_can_not_be_written_goes_on_and_is_written_elsewhere(days: Days) -> None:
    async def record() -> None:
        out, elsewhere = days.place / "out.jsonl", days.place / "elsewhere.parquet"
        await days.begin(out)
        out.write_text("somebody else's by now")
        unwritten = await days.end()
        assert unwritten is not None
        assert (unwritten.state, unwritten.ended) == ("on", None)
        assert "is there already" in unwritten.note
        (condition,) = days.recording.conditions()
        assert "nothing is lost" in condition.text
        assert out.read_text() == "somebody else's by now"
        with pytest.raises(FeedError, match="there is no folder"):
            await recording_end(days.station, RecordingEnd(path=str(days.place / "no" / "a.jsonl")), "bob")
        days.pass_until(150)
        done = await days.end(path=str(elsewhere))
        assert done is not None
        assert (done.state, done.path) == ("written", str(elsewhere))
        assert trace_info(elsewhere).rows == done.rows
        assert days.recording.conditions() == []

    asyncio.run(record())


def test_a_full_disk_at_its_end_loses_nothing(days: Days) -> None:
    async def record(disk: SmallDisk) -> None:
        out = disk.path / "out.jsonl"
        await days.begin(out)
        days.pass_until(150)
        disk.fill()
        unwritten = await days.end()
        assert unwritten is not None
        assert (unwritten.state, unwritten.ended) == ("on", None)
        assert "No space left on device" in unwritten.note
        assert [file.name for file in disk.path.iterdir() if "out" in file.name] == []
        disk.free()
        done = await days.end()
        assert done is not None
        assert (done.state, trace_info(out).rows) == ("written", done.rows)

    with small_disk(days.place / "disk", megabytes=1) as disk:
        asyncio.run(record(disk))


def test_one_that_is_asked_to_be_so_long_ends_by_itself(days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_recording, "LOOK_SECONDS", 0.01)

    async def record() -> None:
        with pytest.raises(FeedError, match="at most 1 d"):
            await days.begin(days.place / "a.jsonl", seconds=86_401.0)
        await days.begin(days.place / "a.jsonl", seconds=600.0)
        running = asyncio.create_task(days.recording.run())
        await asyncio.sleep(0.05)
        assert days.recording._writing is None
        days.now += 600.0
        while days.recording._writing is None:
            await asyncio.sleep(0.01)
        done = await days.written()
        running.cancel()
        assert done is not None
        assert done.state == "written"
        days.now += 3600.0
        assert days.recording.view() is None, "what was written long ago is no news"

    asyncio.run(record())


def test_the_next_station_takes_it_up_and_writes_what_the_last_one_was_writing(
    days: Days, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_recording, "LOOK_SECONDS", 0.01)

    async def record() -> None:
        out = days.place / "out.jsonl"
        begun = await days.begin(out)
        before = days.recording.view()
        days.recording = days.another()
        assert days.recording.view() == before
        assert any("goes on" in text for text in days.told)
        kept = days.recorder.kept(KEPT)
        assert kept is not None
        going = msgspec.json.decode(kept, type=trace_recording.Going)
        days.recording._keep(msgspec.structs.replace(going, ended=days.now))  # killed while it wrote
        days.recording = days.another()
        running = asyncio.create_task(days.recording.run())
        while (view := days.recording.view()) is None or view.state != "written":
            await asyncio.sleep(0.01)
        running.cancel()
        assert view.id == begun.id
        assert trace_info(out).rows == view.rows
        days.recording = days.another()
        assert days.recording.view() is None

    asyncio.run(record())


def test_what_an_unknown_version_remembered_is_no_reason_not_to_start(days: Days) -> None:
    from console.station.recorder import Remember

    days.recorder.put(Remember(KEPT, b'{"of": "another version"}'))
    assert days.another().view() is None


def test_steps_that_were_removed_meanwhile_are_told(days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_file.progress, "up_to", lambda cursor, name: START + 200)

    async def record() -> None:
        await days.begin(days.place / "a.jsonl")
        days.pass_until(150)
        done = await days.end()
        assert done is not None
        assert "begins later" in done.note

    asyncio.run(record())


def test_nothing_is_begun_where_nothing_can_be_stored(days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days.recorder, "flush_and_wait", lambda: False)
    days.recorder.error = "NOT RECORDING: No space left on device"
    with pytest.raises(FeedError, match="No space left"):
        asyncio.run(days.begin(days.place / "a.jsonl"))
    days.recorder.error = None


# A station process


def recording(snapshot: Snapshot) -> RecordingView:
    assert snapshot.recording is not None
    return snapshot.recording


def test_a_recording_outlives_its_console_and_the_station(place: Path) -> None:
    station = StationUnderTest(place)
    try:
        station.start().wait_serving()
        folder = traces_folder()
        assert not folder.exists()
        folder.mkdir()
        out = str(folder / "night.jsonl.zst")
        assert CliRunner().invoke(root, ["trace", "record", out, "--detach"]).stdout == f"{out}\n"
        begun = recording(station.wait(lambda seen: seen.recording is not None, "the recording"))
        # The console that began it is gone: its request came over a connection of its own.
        station.wait(lambda seen: recording(seen).rows > begun.rows + 50, "rows of the recording")
        with pytest.raises(click.ClickException, match="goes on already"):
            ask("recording_begin", RecordingView, RecordingBegin(path=str(folder / "b.jsonl")))
        station.kill()
        station.start().wait_serving()
        again = station.wait(lambda seen: seen.recording is not None, "the recording, taken up").recording
        assert again is not None
        assert (again.id, again.state) == (begun.id, "on")
        station.wait(lambda seen: recording(seen).rows > again.rows + 50, "rows after the station's absence")
        assert CliRunner().invoke(root, ["trace", "end"]).stdout == f"{out}\n"
        written = recording(station.wait(lambda seen: recording(seen).state == "written", "the file"))
        info = trace_info(folder / "night.jsonl.zst")
        assert info.rows >= again.rows + 50
        assert info.bytes == written.bytes
        assert info.records["state"] == 1
        assert info.start is not None
        assert begun.since - 1 <= info.start <= begun.began
        assert info.records.get("gap", 0) >= 1, "its absence shows"
        assert any(isinstance(record, StateRecord) for record in read_records(folder / "night.jsonl.zst"))
        known = listed_whole()
        assert [(look.path, look.rows) for look in known.traces if look.place == "data"] == [
            (written.path, info.rows)
        ]  # fmt: skip
    finally:
        station.close()


def listed_whole() -> Traces:
    """What the station tells of traces once it has looked into the newest."""
    for _ in range(300):
        found = ask("traces", Traces, TracesParams())
        mine = [look for look in found.traces if look.place == "data"]
        if mine and all(look.state == "known" for look in mine):
            return found
        time.sleep(0.1)
    raise AssertionError(f"never read: {found}")
