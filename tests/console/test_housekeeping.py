"""What follows a flush may fail and be tried again; the recording never stops for it."""

from __future__ import annotations

import contextlib
import logging

import duckdb
import pytest

from console.station.housekeeping import Housekeeping
from store.database import Store
from store.ingest import Ingest
from store.windows import LiveWindows
from tests.store.alert_traces import DAY, HOUR, Stream, Tape


@pytest.mark.parametrize("error", [duckdb.IOException("No space left"), KeyError(7)], ids=["disk", "fault"])
@pytest.mark.parametrize("place", ["store.judging.write_changes", "console.station.housekeeping.step_models"])
def test_what_fails_is_told_once_and_made_up_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    caplog.set_level(logging.INFO)
    monkeypatch.setattr("console.station.housekeeping.FIT_SECONDS", 0.0)
    tape = Tape()
    tape.serve(HOUR, [Stream(rate=0.8, steps=4)])
    tape.serve(HOUR, [Stream(rate=0.5, steps=4)])
    with Store.memory() as store:
        house = Housekeeping(store, LiveWindows())
        ingest = Ingest(store)
        with monkeypatch.context() as broken:
            broken.setattr(place, fail)
            for record in tape.records[:-20]:
                ingest.record(record)
            for _ in range(3):
                ingest.flush()
                house.after_flush(contextlib.nullcontext())
        for record in tape.records[-20:]:
            ingest.record(record)
        ingest.flush()
        house.after_flush(contextlib.nullcontext())
        assert [alert.kind for alert in house.alerts] == ["shift"]
        assert store.connection.execute("SELECT kind, state FROM alerts").fetchall() == [("shift", "firing")]
    told = [
        record.getMessage()
        for record in caplog.records
        if "wait" in record.getMessage() or "goes on" in record.getMessage()
    ]
    assert len(told) == 2
    assert "waits" in told[0]
    assert told[1].endswith("goes on")


def test_what_the_judge_remarks_is_told_once_also_to_a_station_that_comes_later() -> None:
    tape, told = Tape(), []
    code, writing = Stream("code", 0.447), Stream("writing", 0.205)
    tape.serve(DAY, [code._replace(sequences=36), writing._replace(sequences=36)], every=HOUR)
    tape.serve(HOUR, [code._replace(sequences=14), writing._replace(sequences=58)])
    tape.serve(HOUR, [code._replace(sequences=14)])
    with Store.memory() as store:
        house = Housekeeping(store, LiveWindows(), tell=lambda kind, text: told.append((kind, text)))
        ingest = Ingest(store)
        for record in tape.records:
            ingest.record(record)
        ingest.flush()
        for _ in range(2):
            house.after_flush(contextlib.nullcontext())
        Housekeeping(store, LiveWindows(), tell=lambda kind, text: told.append((kind, text))).after_flush(
            contextlib.nullcontext()
        )
    assert [kind for kind, _ in told] == ["mix"]
    assert "writing" in told[0][1]
