"""Traces: what is written is read again, what is broken is named with its line, what is cut off is dropped."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from engine.records import ControlRecord, GapRecord, Record, StateRecord
from store.database import StoreError
from store.export import export
from store.judging import judge_all
from store.report import report
from store.source import open_source
from store.trace import TraceError, TraceNotes, TraceWriter, read_records, trace_info
from tests.store.builders import T0, engine, finish, reported, row, sequence, step, store_of

RECORDS: list[Record] = [
    engine(),
    StateRecord(T0, {"pinned": [1, 2]}),
    sequence("a", "code"),
    sequence("b", None, temperature=0.8),
    step(1, [row("a", d=4, a=4), row("b", d=0, a=0, k=4, cause="grammar", proposed=3, invalid=3)]),
    step(2, [row("a", d=4, a=1), row("b", d=2, a=3), row("z", d=1, a=1, proposed=None)]),
    ControlRecord(T0 + 0.25, "operator", "mode", None, {"mode": "static", "k": 4}, {"mode": "off"}, 2, "try"),
    step(3, [row("a", d=0, a=0, e=1, limit="off")], k_draft=0, limit_draft="off", probe="k0"),
    GapRecord("e0", T0 + 0.35, 12),
    finish("a", T0 + 0.4),
]


def write(path: Path, records: list[Record]) -> Path:
    with TraceWriter(path) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.zst"])
def test_a_trace_reads_as_it_was_written(tmp_path: Path, name: str) -> None:
    assert list(read_records(write(tmp_path / name, RECORDS))) == RECORDS


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.zst"])
def test_a_store_exported_as_a_trace_gives_the_same_report_and_the_same_trace_again(tmp_path: Path, name: str) -> None:
    with store_of(RECORDS) as store:
        judge_all(store.connection)  # which notes that it can't read the state
        before = report(store.connection, source="x")
        export(store.connection, tmp_path / name)
    with open_source(tmp_path / name) as store:
        assert report(store.connection, source="x") == before
        export(store.connection, tmp_path / "again.jsonl")
    assert list(read_records(tmp_path / "again.jsonl")) == list(read_records(tmp_path / name))
    assert before.quarantined == 1
    assert [bucket.workload for bucket in before.buckets] == ["code", "unattributed", "untagged"]


def test_a_trace_cut_at_any_byte_is_a_shorter_trace_or_says_why_not(tmp_path: Path) -> None:
    whole = write(tmp_path / "t.jsonl", RECORDS).read_bytes()
    path = tmp_path / "cut.jsonl"
    first = whole.index(b"\n")
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        notes = TraceNotes()
        if length < first:
            with pytest.raises(TraceError):
                list(read_records(path, notes))
            continue
        records = list(read_records(path, notes))
        assert records == RECORDS[: len(records)]
        assert bool(notes.dropped) == (
            whole[:length].count(b"\n") == len(records) and whole[length - 1 : length] != b"\n"
        )


def test_a_compressed_trace_cut_anywhere_gives_what_was_flushed_before(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.zst"
    with TraceWriter(path) as writer:
        for record in RECORDS:
            writer.write(record)
            writer.flush()
    whole = path.read_bytes()
    read = 0
    for length in range(4, len(whole), 7):
        path.write_bytes(whole[:length])
        try:
            records = list(read_records(path))
        except TraceError:
            continue
        assert records == RECORDS[: len(records)]
        read = max(read, len(records))
    assert read >= len(RECORDS) - 1


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"type":"wibble","ts":1}', "unknown type 'wibble'"),
        ('{"ts":1}', "no `type`"),
        ('{"type":7}', "unknown type 7"),
        ("[1,2]", "not a JSON object"),
        ('{"type":"gap","engine":"e0","ts":"soon","frames_lost":1}', r"ts"),
        ('{"type":"gap","engine":"e0"}', "ts"),
        ("\x00\xff", "not a JSON object"),
        ("[" * 10_000, "not a JSON object"),
    ],
)
def test_a_broken_line_is_an_error_with_its_number(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "t.jsonl"
    good = msgspec.json.encode(engine()) + b"\n"
    path.write_bytes(good + line.encode("latin-1") + b"\n" + good)
    with pytest.raises(TraceError, match=rf"t\.jsonl:2: .*{what}") as broken:
        list(read_records(path))
    assert broken.value.line == 2


def test_a_newer_trace_format_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [engine(v=3)])
    with pytest.raises(TraceError, match="trace format 3"):
        list(read_records(path))


@pytest.mark.parametrize("records", [[], [GapRecord("e0", T0, 1)], [sequence("a"), engine()]])
def test_a_trace_without_an_engine_record_is_refused(tmp_path: Path, records: list[Record]) -> None:
    with pytest.raises(TraceError, match="engine record"):
        list(read_records(write(tmp_path / "t.jsonl", records)))


def test_unknown_fields_are_ignored_counted_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [msgspec.json.encode(msgspec.to_builtins(record) | {"mood": "good"}) for record in RECORDS]
    path.write_bytes(b"\n".join(lines))
    with open_source(path) as store:
        notes = report(store.connection, source="x").notes
    assert "unknown field step.mood ignored on 3 lines" in notes


def test_records_out_of_order_within_a_second_are_sorted(tmp_path: Path) -> None:
    shuffled = [RECORDS[0], *RECORDS[:0:-1]]
    read = list(read_records(write(tmp_path / "t.jsonl", shuffled)))
    assert [record.ts for record in read] == sorted(record.ts for record in read)
    assert reported(read).total == reported(RECORDS).total


def test_the_last_row_may_come_after_the_finish_and_the_first_before_the_arrival() -> None:
    records = [engine(), step(1, [row("a")]), sequence("a", ts=T0 + 0.15), finish("a", T0 + 0.2), step(3, [row("a")])]
    (bucket,) = reported(records).buckets
    assert (bucket.workload, bucket.decode_rows) == ("code", 2)


def test_a_name_that_is_used_again_after_its_finish_is_another_sequence() -> None:
    records = [engine(), sequence("a", "one"), step(1, [row("a")]), finish("a", T0 + 0.1)]
    records += [sequence("a", "two", ts=T0 + 0.15), step(2, [row("a")])]
    report = reported(records)
    assert [(bucket.workload, bucket.decode_rows) for bucket in report.buckets] == [("one", 1), ("two", 1)]


def test_numbers_beyond_any_integer_type_are_quarantined() -> None:
    records = [engine(), sequence("a"), step(1, [row("a", context=10**30), row("a", d=70_000, a=0), row("a")])]
    report = reported(records)
    assert report.quarantined == 2
    assert report.total is not None
    assert report.total.decode_rows == 1


def test_info_says_what_is_in_a_trace(tmp_path: Path) -> None:
    info = trace_info(write(tmp_path / "t.jsonl.zst", RECORDS))
    assert info.compressed
    assert (info.sequences, info.steps, info.rows, info.frames_lost) == (2, 3, 6, 12)
    assert info.workloads == {"code": 1, "untagged": 1}
    assert info.start == T0
    assert info.end == pytest.approx(T0 + 0.4, abs=1e-4)
    assert [record.engine for record in info.engines] == ["e0"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere"):
        list(read_records(tmp_path / "nowhere.jsonl"))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for read in (open_source, trace_info):
        with pytest.raises(StoreError, match="a pipe or a device"):
            read(pipe)


def test_records_that_lie_on_no_time_axis_are_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "far.jsonl"
    with TraceWriter(path) as out:
        for record in (engine(), sequence("a"), step(1, [row("a")]), step(2, [row("a")], ts=1e15)):
            out.write(record)
    with open_source(path) as store:
        shown = report(store.connection, source="far")
    assert shown.total is not None
    assert shown.total.decode_rows == 1
    assert [note for note in shown.notes if note.startswith("1 records of the trace have impossible numbers")]
