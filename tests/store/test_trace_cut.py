"""A part of a trace can be read alone, and shows what the whole shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.records import CUT_ACTION, ControlRecord, EngineRecord, Record, SequenceRecord, StateRecord, StepRecord
from store.alerts import read_alerts
from store.export import export
from store.judge.settings import JudgeSettings
from store.report import report
from store.source import open_source
from store.trace import TraceError, read_records, trace_info
from store.trace.chosen import Choice
from store.trace.cut import ROWS_LEFT_OUT, cut
from tests.store.builders import T0, engine, finish, row, sequence, step
from tests.store.station_days import START, Station, day, told
from tests.store.test_traces import write

MODE = ControlRecord(T0 + 2, "operator", "mode", None, None, {"mode": "off"}, 2)
CAP = ControlRecord(T0 + 35, "operator", "cap", None, None, {"cap": 2}, 3)
TRACE: list[Record] = [
    engine(),
    sequence("old", "code"),
    sequence("gone", "code"),
    sequence("chat", "chat", temperature=0.8),
    MODE,
    step(1, [row("old"), row("gone")], ts=T0 + 5),
    finish("gone", T0 + 6),
    step(2, [row("old", context=600), row("chat", a=1)], ts=T0 + 21),
    sequence("new", "code", ts=T0 + 30),
    CAP,
    step(3, [row("new"), row("chat", a=1)], ts=T0 + 36),
    step(4, [row("old")], ts=T0 + 45),
    finish("old", T0 + 46),
]


def cut_of(tmp_path: Path, choice: Choice, name: str = "out.jsonl") -> list[Record]:
    cut(write(tmp_path / "in.jsonl", TRACE), tmp_path / name, choice)
    return list(read_records(tmp_path / name))


def test_a_cut_by_time_has_the_engine_the_sequences_and_the_controls_that_it_needs(tmp_path: Path) -> None:
    found = cut_of(tmp_path, Choice(start=T0 + 20, end=T0 + 40))
    assert [record.step for record in found if isinstance(record, StepRecord)] == [2, 3]
    assert [record.seq for record in found if isinstance(record, SequenceRecord)] == ["old", "chat", "new"]
    assert [record for record in found if isinstance(record, ControlRecord)] == [MODE, CAP]
    assert isinstance(found[0], EngineRecord)


def test_what_rows_need_is_there_though_a_clock_that_was_set_back_put_it_after_the_cut(tmp_path: Path) -> None:
    set_back = [engine(), sequence("old", "code", ts=T0 + 300), step(1, [row("old")], ts=T0 + 301)]
    set_back += [step(2, [row("old")], ts=T0 + 5), engine(boot="b2", ts=T0 + 400), sequence("new", "chat", ts=T0 + 400)]
    set_back += [step(3, [row("new")], ts=T0 + 8)]
    set_back[0] = replace(set_back[0], ts=T0 + 299)
    cut(write(tmp_path / "in.jsonl", set_back), tmp_path / "out.jsonl", Choice(start=T0, end=T0 + 10))
    found = list(read_records(tmp_path / "out.jsonl"))
    assert [record.step for record in found if isinstance(record, StepRecord)] == [2, 3]
    assert [record.seq for record in found if isinstance(record, SequenceRecord)] == ["old", "new"]
    assert len([record for record in found if isinstance(record, EngineRecord)]) == 2


def test_a_cut_begins_with_what_was_known_at_its_start(tmp_path: Path) -> None:
    found = cut_of(tmp_path, Choice(start=T0 + 27))
    (state,) = [record for record in found if isinstance(record, StateRecord)]
    assert state.ts == T0 + 20
    assert min(record.ts for record in found if isinstance(record, StepRecord)) == T0 + 21


def test_a_cut_from_the_start_needs_no_state(tmp_path: Path) -> None:
    assert cut_of(tmp_path, Choice(end=T0 + 40), "out.parquet") == TRACE[:11]


def test_a_cut_by_workload_keeps_the_facts_of_steps_and_says_what_cant_be_told(tmp_path: Path) -> None:
    found = cut_of(tmp_path, Choice(workload="chat"))
    assert [(one.step, len(one.rows), one.running) for one in found if isinstance(one, StepRecord)] == [
        (2, 1, 2), (3, 1, 2),
    ]  # fmt: skip
    assert [record.action for record in found if isinstance(record, ControlRecord)] == [CUT_ACTION, "mode", "cap"]
    assert trace_info(tmp_path / "out.jsonl").notes == [ROWS_LEFT_OUT]
    with open_source(tmp_path / "out.jsonl") as store, open_source(tmp_path / "in.jsonl") as whole:
        part, all_of_it = (report(one.connection, source="x") for one in (store, whole))
    assert ROWS_LEFT_OUT in part.notes
    (chat,) = part.buckets
    (before,) = [bucket for bucket in all_of_it.buckets if bucket.workload == "chat"]
    for name in ("alpha", "waste_ratio", "decode_rows", "mean_acceptance_length"):
        assert getattr(chat, name) == getattr(before, name)


@pytest.mark.parametrize(
    ("choice", "rows"),
    [
        (Choice(context="512-2048"), [(2, "old")]),
        (Choice(temperature="(0.5,1]"), [(2, "chat"), (3, "chat")]),
        (Choice(sequences=frozenset(("new", "gone"))), [(1, "gone"), (3, "new")]),
        (Choice(workload="code", start=T0 + 20, end=T0 + 40), [(2, "old"), (3, "new")]),
    ],
)
def test_only_chosen_rows_are_kept(tmp_path: Path, choice: Choice, rows: list[tuple[int, str]]) -> None:
    found = cut_of(tmp_path, choice)
    assert [(one.step, each.seq) for one in found if isinstance(one, StepRecord) for each in one.rows] == rows
    assert {record.seq for record in found if isinstance(record, SequenceRecord)} == {seq for _, seq in rows}


def test_a_row_that_comes_before_its_sequence_and_a_name_that_is_used_again_are_told_apart(tmp_path: Path) -> None:
    records = [engine(), step(1, [row("a")]), sequence("a", "one", ts=T0 + 0.15), finish("a", T0 + 0.2)]
    records += [sequence("a", "two", ts=T0 + 0.25), step(3, [row("a")])]
    write(tmp_path / "in.jsonl", records)
    for tag, number in (("one", 1), ("two", 3)):
        cut(tmp_path / "in.jsonl", tmp_path / f"{tag}.jsonl", Choice(workload=tag))
        found = read_records(tmp_path / f"{tag}.jsonl")
        assert [record.step for record in found if isinstance(record, StepRecord)] == [number]


def test_a_cut_of_nothing_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no step of what was chosen; it goes from 1790000004\.900 to 1790000045"):
        cut_of(tmp_path, Choice(start=T0 + 500))
    assert not list(tmp_path.glob("*out*"))


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(TraceError, match="exists; choose another name"):
        cut_of(tmp_path, Choice(end=T0 + 40))
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_a_cut_is_judged_like_that_part_of_the_whole(tmp_path: Path) -> None:
    messages = list(day(31))
    station = Station(JudgeSettings(speedup_floor=1.4))
    station.live(iter(messages[:300]), lambda: 40.0)
    state = station.state()
    station.live(iter(messages[300:]), lambda: 40.0)
    export(station.store.connection, tmp_path / "whole.jsonl", state=state)
    edge = START + 14 * 60
    cut(tmp_path / "whole.jsonl", tmp_path / "cut.parquet", Choice(start=edge + 3))
    with open_source(tmp_path / "whole.jsonl") as whole, open_source(tmp_path / "cut.parquet") as part:
        expected, found = (
            [one for one in read_alerts(each.connection) if one.ended is None or one.ended >= edge]
            for each in (whole, part)
        )
    assert len(expected) > 1
    assert told(found) == told(expected)
