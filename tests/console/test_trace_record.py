"""A recording of a running station: it begins with what the judge knows, and nothing is written before its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from console.cli.root import root
from console.cli.trace_record import begins_knowing
from console.feed.protocol import ExportParams
from console.feed.server import FeedError
from console.station import queries
from console.station.recorder import Received, Recorder, open_recorder
from engine.frames import Announcement, Frame
from engine.records import StateRecord, StepRecord
from store.trace import TraceWriter, read_records
from tests.store.builders import engine
from tests.store.station_days import START, day


@pytest.fixture
def station(tmp_path: Path) -> Any:
    recorder = open_recorder(tmp_path / "store.duckdb", lambda kind, text: None)
    recorder.start()
    yield SimpleNamespace(recorder=recorder)
    recorder.stop()


def fed(recorder: Recorder, minutes: int) -> None:
    for ts, message in day(minutes):
        if isinstance(message, Frame | Announcement):
            recorder.put(Received(message, ts))
    assert recorder.flush_and_wait()


def test_it_begins_where_the_judge_has_come_to(station: Any, tmp_path: Path) -> None:
    fed(station.recorder, 4)
    state = asyncio.run(queries.trace_state(station, None, "ada"))
    out = tmp_path / "out.jsonl.zst"
    asyncio.run(queries.export(station, ExportParams(path=str(out), kind="jsonl", state=state), "ada"))
    records = list(read_records(out))
    assert [record for record in records if isinstance(record, StateRecord)] == [state]
    assert begins_knowing(out)
    asyncio.run(queries.export(station, ExportParams(path=str(tmp_path / "all.parquet")), "ada"))
    assert not begins_knowing(tmp_path / "all.parquet"), "the whole store began with nothing"
    (first, *_) = (record.ts for record in records if isinstance(record, StepRecord))
    assert START + 200 <= state.ts <= first < state.ts + 3


def test_nothing_can_be_recorded_before_there_is_an_engine(station: Any) -> None:
    with pytest.raises(FeedError, match="no engine was recorded yet"):
        asyncio.run(queries.trace_state(station, None, "ada"))


@pytest.mark.parametrize("name", ["run.jsonl", "run.parquet"])
@pytest.mark.parametrize("ended", ["time", "ctrl+c"])
def test_it_is_written_when_the_time_is_over_or_at_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: str, name: str
) -> None:
    asked: list[str] = []
    state = StateRecord(START, {"version": 1})

    def ask(method: str, kind: type, params: Any = None, *, seconds: float = 0.0) -> Any:
        asked.append(method)
        if method == "trace_state":
            return state
        with TraceWriter(params.path) as writer:  # as the station does
            for record in (engine(START), params.state):
                writer.write(record)
        return params.path

    def sleep(seconds: float) -> None:
        asked.append("waited")
        if ended == "ctrl+c":
            raise KeyboardInterrupt

    monkeypatch.setattr("console.cli.station.ask", ask)
    monkeypatch.setattr("time.sleep", sleep)
    out = tmp_path / name
    arguments = ["--for", "10m"] if ended == "time" else []
    result = CliRunner().invoke(root, ["trace", "record", str(out), *arguments])
    assert (result.exit_code, result.stdout) == (0, f"{out}\n")
    assert "without what the judge knew" not in result.stderr
    assert asked == ["trace_state", "waited", "export"]
    assert list(read_records(out)) == [engine(START), state]
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("run.csv", [], "name it .jsonl"),
        ("there.jsonl", [], "is there already"),
        ("run.jsonl", ["--for", "3d"], "at most 1d"),
        ("run.jsonl", ["--for", "soon"], "no span of time"),
    ],
    ids=["kind", "there", "long", "span"],
)
def test_what_cannot_be_recorded_is_said_before_anything_is_asked(
    tmp_path: Path, name: str, arguments: list[str], why: str
) -> None:
    (tmp_path / "there.jsonl").touch()
    result = CliRunner().invoke(root, ["trace", "record", str(tmp_path / name), *arguments])
    assert result.exit_code == 2
    assert why in result.stderr
