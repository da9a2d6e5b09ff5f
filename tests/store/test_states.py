"""A record is judged alike live, in a replay from its start, and in one that begins with what the judge knew."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records import StateRecord
from store.alerts import read_alerts
from store.database import Store
from store.export import export
from store.ingest import Ingest
from store.judge.settings import JudgeSettings
from store.judging import Judging
from store.report import report
from store.source import open_source, take_in
from store.trace import TraceWriter, read_records
from tests.store.station_days import START, Station, day, rounded, told, transitions

MINUTES = 31
FLOOR = JudgeSettings(speedup_floor=1.4)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Station, Path, Path]:
    """A station's life, and what was recorded: all of it, and from its twelfth minute on."""
    folder = tmp_path_factory.mktemp("lived")
    messages = list(day(MINUTES))
    early = [one for one in messages if one[0] < START + 12.4 * 60]
    station = Station(FLOOR)
    station.live(iter(early), lambda: 60.0)
    state = station.state()
    station.live(iter(messages[len(early) :]), lambda: 60.0)
    export(station.store.connection, folder / "whole.jsonl")
    export(station.store.connection, folder / "recorded.jsonl.zst", state=state)
    return station, folder / "whole.jsonl", folder / "recorded.jsonl.zst"


def test_a_recording_that_begins_in_the_middle_is_judged_as_the_station_judged(
    lived: tuple[Station, Path, Path],
) -> None:
    station, _, recorded = lived
    alerts = read_alerts(station.store.connection)
    assert {alert.kind for alert in alerts} == {"failing_workload", "speedup_floor", "telemetry_loss"}
    with open_source(recorded) as store:  # by the station's own settings, which came along
        assert told(read_alerts(store.connection)) == told(alerts)


def test_a_recording_has_the_same_figures_and_transitions(lived: tuple[Station, Path, Path]) -> None:
    station, _, recorded = lived
    (state,) = [record for record in read_records(recorded) if isinstance(record, StateRecord)]
    end = max(record.ts for record in read_records(recorded))
    with open_source(recorded) as store:
        (first,) = store.connection.execute("SELECT min(ts) FROM steps").fetchall()[0]
        assert transitions(store, first, end) == transitions(station.store, first, end) != []
        live = report(station.store.connection, source="", window=end - state.ts, at=end)
        again = report(store.connection, source="", window=end - state.ts, at=end)
    # What changed at its very first step a record can't tell.
    both = [
        msgspec.structs.replace(one, transitions=[t for t in one.transitions if t.ts > first]) for one in (again, live)
    ]
    assert rounded(msgspec.to_builtins(both[0])) == rounded(msgspec.to_builtins(both[1]))


def test_a_whole_record_is_judged_alike_while_it_is_read(lived: tuple[Station, Path, Path]) -> None:
    station, whole, _ = lived
    with Store.memory() as store:
        judging = Judging(store.connection, FLOOR)
        take_in(whole, Ingest(store), flushed=lambda ts: judging.catch_up())
        assert told(read_alerts(store.connection)) == told(read_alerts(station.store.connection))


@settings(deadline=None, max_examples=2)
@given(st.integers(0, 2**32 - 1))
def test_it_does_not_matter_when_and_by_whom_the_judge_is_asked(lived: tuple[Station, Path, Path], seed: int) -> None:
    random = np.random.default_rng(seed)
    station = Station(FLOOR, again=lambda: random.random() < 0.3)
    station.live(day(MINUTES), lambda: random.choice([3.0, 50.0, 200.0, 700.0]))
    assert told(read_alerts(station.store.connection)) == told(read_alerts(lived[0].store.connection))


@pytest.mark.parametrize(
    "broken",
    [{"version": 2}, {"version": 1, "sha256": "0", "zstd": "AAAA"}, {"pinned": [1]}],
    ids=["newer", "cut", "none"],
)
def test_a_state_that_cannot_be_read_is_a_note(
    lived: tuple[Station, Path, Path], tmp_path: Path, broken: dict[str, object]
) -> None:
    records = [
        msgspec.structs.replace(record, state=broken) if isinstance(record, StateRecord) else record
        for record in read_records(lived[2])
    ][:400]
    with TraceWriter(tmp_path / "broken.jsonl") as writer:
        for record in records:
            writer.write(record)
    with open_source(tmp_path / "broken.jsonl") as store:
        notes = report(store.connection, source="").notes
    assert any("it is judged unknowing" in note for note in notes)
