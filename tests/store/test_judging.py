"""The judge over a store: live and replayed it finds the same, whatever the record holds, and nothing is lost."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from pathlib import Path

import duckdb
import msgspec
import pytest
import zstandard

from engine.records import ControlRecord, GapRecord, PolicyMode, Record
from store.alerts import history, write_changes
from store.database import Store
from store.ingest import Ingest
from store.judge.alerts import Changes
from store.judge.inputs import ClockStep
from store.judge.judge import Judge
from store.judge.reports import AlertReport
from store.judging import Judging, judge_all
from store.source import open_source
from tests.store.alert_traces import HOUR, Stream, Tape
from tests.store.builders import T0, engine, row, sequence, step, store_of

STATIC = PolicyMode(mode="static", k=4)


def told(store: Store) -> list[AlertReport]:
    """The history without its numbers: they go by when something became known."""
    return [msgspec.structs.replace(alert, id=0) for alert in history(store.connection).alerts]


def replayed(records: Iterable[Record]) -> list[AlertReport]:
    with store_of(records) as store:
        judge_all(store.connection)
        return told(store)


def lived_through(records: Iterable[Record], every: float = 10.0, *, restarts: bool = False) -> list[AlertReport]:
    """As a station takes them: flushed and judged every few seconds. `restarts`: by another judge each time, which
    knows what was last saved."""
    with Store.memory() as store:
        ingest, judging, flushed = Ingest(store), Judging(store.connection), 0.0
        for record in records:
            ingest.record(record)
            if record.ts >= flushed + every:
                flushed = record.ts
                ingest.flush()
                if restarts:
                    judging = Judging(store.connection)
                with contextlib.suppress(duckdb.Error):
                    judging.catch_up()
        ingest.close()
        if not restarts:
            judging.save()
        judge_all(store.connection)
        return told(store)


def eventful() -> list[Record]:
    """Fifty minutes in which many things go wrong."""
    tape = Tape(configured=STATIC, resolved=STATIC)
    for minute in range(50):
        began = tape.now
        tape.burst([Stream(rate=0.8 if minute < 25 else 0.5, k=4, sequences=8, steps=5)], limit_draft="static")
        if minute in (8, 9, 30):  # a K that nobody configured, for a minute
            name = tape.arrive("chat")
            for _ in range(40):
                tape.step([row(name, d=2, a=1)], 1.0, limit_draft="static")
        if minute == 14:
            tape.records.append(GapRecord("e0", tape.now + 5, 12, tape.now))
            tape.step([row("s1", d=3, a=7)], limit_draft="static", k_draft=4)
        if minute == 40:
            tape.records.append(GapRecord("e0", tape.now + 9, 0, tape.now + 1, "killed"))
            tape.start(max_k=6)
        tape.now = max(tape.now, began + 60)
    return tape.records


def test_live_and_replay_find_the_same() -> None:
    records = eventful()
    found = replayed(records)
    assert {alert.kind for alert in found} == {
        "shift", "policy_mismatch", "telemetry_loss", "quarantine", "engine_down",
    }  # fmt: skip
    assert len([alert for alert in found if alert.kind == "policy_mismatch"]) == 2
    assert lived_through(records, every=100.0) == found
    assert lived_through(records, every=400.0, restarts=True) == found


@pytest.mark.parametrize(("pace", "after"), [(0.2, 0), (0.9, 7), (2.0, 7)], ids=["fast", "slow", "slower"])
def test_a_mismatch_is_found_live_however_the_steps_fall_into_cells(pace: float, after: int) -> None:
    records: list[Record] = [engine(), sequence("a")]
    ts, number = T0 + after, 0
    for k, many in ((4, 30), (2, 30), (4, 60)):
        for _ in range(many):
            number, ts = number + 1, ts + pace
            records.append(step(number, [row("a", d=k, a=1)], ts, k_draft=k, k_verify=k))
    (alert,) = replayed(records)
    assert (alert.kind, alert.evidence["executed"]) == ("policy_mismatch", 2)
    assert alert.started == pytest.approx(T0 + after + 31 * pace, abs=1e-4)
    (live,) = lived_through(records)
    assert (live.started, live.ended) == (alert.started, alert.ended)


def test_a_mismatch_ends_with_its_engine() -> None:
    records: list[Record] = [engine(), sequence("a")]
    records += [step(n, [row("a", d=2, a=1)], T0 + n, k_draft=2) for n in range(1, 60)]
    records += [engine(T0 + 100), sequence("b", ts=T0 + 101)]
    records += [step(n, [row("b", d=4, a=1)], T0 + 100 + n) for n in range(1, 900)]
    (alert,) = replayed(records)
    assert (alert.kind, alert.state) == ("policy_mismatch", "resolved")


@pytest.mark.parametrize("back", [5.0, 1800.0, 40 * 365 * 24 * HOUR], ids=["seconds", "half-hour", "decades"])
def test_a_clock_that_goes_back_is_an_alert_at_the_moment_it_had_come_to(back: float) -> None:
    records: list[Record] = [engine(), sequence("a")]
    records += [step(n, [row("a")], T0 + 5 * n) for n in range(1, 40)]
    set_back = T0 + 5 * 39
    records += [step(40 + n, [row("a")], set_back - back + 5 * n) for n in range(40)]
    for found in (replayed(records), lived_through(records, every=30.0)):
        (alert,) = [one for one in found if one.kind == "clock_step"]
        assert alert.started == set_back
        assert alert.evidence["seconds"] == pytest.approx(-back)


def test_a_record_without_a_single_good_row_is_judged_to_its_end() -> None:
    records: list[Record] = [engine(), sequence("a"), GapRecord("e0", T0 + 900, 7, T0 + 890)]
    assert [alert.kind for alert in replayed(records)] == ["telemetry_loss"]
    records += [step(n, [row("a", d=3, a=9)], T0 + n) for n in range(1, 40)]
    found = replayed(records)
    assert [alert.kind for alert in found] == ["quarantine", "telemetry_loss"]
    assert found[0].evidence["rows"] == 39


@pytest.mark.parametrize("records", [[engine()], [engine(), sequence("a")]], ids=["engine", "request"])
def test_a_record_of_nothing_has_no_alerts(records: list[Record]) -> None:
    assert replayed(records) == []


def test_ten_thousand_tags_raise_nothing_and_break_nothing() -> None:
    records: list[Record] = [engine()]
    for cell in range(20):
        names = [f"s{cell}-{number}" for number in range(500)]
        records += [sequence(name, f"[b]{name}'--", T0 + 60 * cell) for name in names]
        records.append(step(cell + 1, [row(name, a=number % 5) for number, name in enumerate(names)], T0 + 60 * cell))
    assert replayed(records) == []


def test_what_could_not_be_written_is_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    records = eventful()
    expected = replayed(records)
    full = itertools.chain([True] * 8, itertools.repeat(False))

    def write(connection: duckdb.DuckDBPyConnection, changes: Changes) -> None:
        if next(full):
            raise duckdb.IOException("No space left on device")
        write_changes(connection, changes)

    monkeypatch.setattr("store.judging.write_changes", write)
    assert lived_through(records, every=150.0) == expected


def test_a_stretch_that_breaks_the_judge_is_left_out_and_counts_no_cell_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [engine(), sequence("a"), *(step(n, [row("a")], T0 + 5 * n) for n in range(1, 40))]
    with store_of(records) as store:
        judging, counted = Judging(store.connection), []
        plain, load = Judge.load, itertools.count()

        def breaks_once(judge: Judge, cells: object) -> None:
            if next(load) == 2:
                raise OverflowError("math range error")
            counted.append(cells)
            plain(judge, cells)  # type: ignore[arg-type]

        monkeypatch.setattr(Judge, "load", breaks_once)
        with pytest.raises(OverflowError):
            judging.catch_up()
        before = len(counted)
        judging.catch_up()
        assert (before, len(counted)) == (2, 2), "what was added is not added again"


def test_the_memory_of_a_judge_is_kept_small_and_another_one_goes_on_with_it(tmp_path: Path) -> None:
    tape = Tape()
    for _ in range(30):
        tape.burst([Stream(f"w{number}", sequences=3, steps=3) for number in range(40)])
        tape.now += HOUR
    with open_source(tape.write(tmp_path / "many.jsonl")) as store:
        (size,) = store.connection.execute("SELECT octet_length(state) FROM judge").fetchone() or (0,)
        assert 0 < size < 200_000
        going_on = Judging(store.connection)
        assert len(going_on.judge.views()) == 40


@pytest.mark.parametrize(
    "state", [b"", b"\x28\xb5\x2f\xfd", zstandard.compress(b'{"version": 99}')], ids=["empty", "cut", "newer"]
)
def test_a_memory_that_cannot_be_read_is_replaced_and_its_alerts_are_over(state: bytes) -> None:
    tape = Tape()
    tape.serve(2 * HOUR, [Stream(rate=0.8)])
    tape.serve(HOUR, [Stream(rate=0.5)])
    with store_of(tape.records) as store:
        judge_all(store.connection)
        store.connection.execute("UPDATE judge SET state = ?", [state])
        again = Judging(store.connection)
        again.save()
        (alert,) = history(store.connection).alerts
        assert (alert.state, alert.causes[-1].kind) == ("resolved", "gone")
        again.judge.event(ClockStep("e0", tape.now, -3.0))
        again.save()
        assert [one.id for one in history(store.connection).alerts] == [alert.id, alert.id + 1]


def test_what_the_operator_does_about_alerts_is_no_cause_of_another() -> None:
    tape = Tape()
    tape.serve(2 * HOUR, [Stream(rate=0.8)])
    tape.records.append(ControlRecord(tape.now - 60, "ada", "alert_snooze", after={"alert": 3}))
    tape.records.append(ControlRecord(tape.now - 30, "ada", "cap", after={"cap": 2}))
    tape.serve(HOUR, [Stream(rate=0.5)])
    (alert,) = replayed(tape.records)
    assert [cause.text for cause in alert.causes] == ["ada: cap: 2"]
