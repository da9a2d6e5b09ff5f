"""Prompts and answers in a trace: told at its beginning, for its owner alone, kept by convert and cut, in no store."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.records import (
    TEXT_ACTION,
    TEXT_VERSION,
    ControlRecord,
    EngineRecord,
    Passage,
    Record,
    StepRecord,
    TextRecord,
)
from store.answered import answered_as, answered_sql
from store.bundle.parts import learn_trace, redact_trace
from store.database import Store
from store.export import export
from store.ingest import TEXT_LEFT
from store.redact.redactor import Redactor
from store.report import report
from store.source import open_source
from store.tables import TABLES
from store.trace import TraceError, TraceNotes, TraceWriter, file_records, jsonl, read_records, trace_info
from store.trace.chosen import Choice
from store.trace.convert import convert, written
from store.trace.cut import cut
from store.trace.texts import text_mark, with_text
from tests.store.builders import T0, engine, finish, row, sequence, step
from tests.store.small_disk import small_disk
from tests.store.test_traces import write

FORMS = ["t.jsonl", "t.jsonl.zst", "t.parquet"]
SECRET = "Violet-4711"
LEFT_OUT = {"of a form that is not read": 2}


def text(request: str, ts: float, what: str = SECRET) -> TextRecord:
    return TextRecord("e0", ts, request, [Passage(f"tell {what} of {request}", "user")], [Passage(f"{what}!")])


COUNTS: list[Record] = [
    engine(),
    sequence("old", "code", request="chatcmpl-old-0b5f01ca"),
    sequence("chat", "chat", request="cmpl-chat-0-0b5f01ca"),
    step(1, [row("old")], ts=T0 + 5),
    step(2, [row("old"), row("chat", a=1)], ts=T0 + 21),
    sequence("new", "code", ts=T0 + 30, request="chatcmpl-new-0b5f01ca"),
    step(3, [row("new"), row("chat", a=1)], ts=T0 + 36),
    finish("new", T0 + 46),
]
TEXTS = [text("chatcmpl-old", T0 - 1), text("cmpl-chat", T0 + 3), text("chatcmpl-new", T0 + 29.9)]
MARK = text_mark(T0 - 2, T0 + 50, len(TEXTS), LEFT_OUT)


def recorded(path: Path) -> Path:
    """As `trace record --with-text` writes it."""
    written(path, with_text(COUNTS, TEXTS, MARK), TraceNotes())
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", FORMS)
def test_it_begins_by_saying_so_and_nobody_else_can_read_it(tmp_path: Path, name: str) -> None:
    before = os.umask(0)
    try:
        path = recorded(tmp_path / name)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    first, second, *rest = file_records(path)
    assert isinstance(first, ControlRecord)
    assert (first.action, "prompts and answers" in (first.why or "")) == (TEXT_ACTION, True)
    assert isinstance(second, EngineRecord)
    assert second.v == TEXT_VERSION
    assert [record.ts for record in rest] == sorted(record.ts for record in rest)
    assert [record for record in rest if isinstance(record, TextRecord)] == TEXTS
    info = trace_info(path)
    assert (info.texts, info.sequences, info.end) == (3, 3, T0 + 46)
    assert info.notes == ["text left out: 2 requests of a form that is not read"]


def test_a_reader_that_knows_of_no_text_refuses_it_at_its_engine_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "TEXT_VERSION", 1)
    with pytest.raises(TraceError, match=r"t\.jsonl:2: trace format 2; this specdeck reads up to 1"):
        list(read_records(recorded(tmp_path / "t.jsonl")))


@pytest.mark.parametrize("there", FORMS)
def test_convert_keeps_it_there_and_back_and_takes_it_out_when_told_to(tmp_path: Path, there: str) -> None:
    path = recorded(tmp_path / "in.jsonl")
    convert(path, tmp_path / there)
    convert(tmp_path / there, tmp_path / "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == path.read_bytes()
    assert mode(tmp_path / there) == mode(tmp_path / "back.jsonl") == 0o600
    convert(tmp_path / there, tmp_path / "without.jsonl", text=False)
    assert (tmp_path / "without.jsonl").read_bytes() == write(tmp_path / "counts.jsonl", COUNTS).read_bytes()
    assert mode(tmp_path / "without.jsonl") == mode(tmp_path / "counts.jsonl")


def test_a_trace_that_does_not_say_that_it_holds_text_is_written_for_its_owner_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as writer:
        writer.write(engine())
        assert mode(path) != 0o600
        writer.write(TEXTS[0])
        assert mode(path) == 0o600


def test_no_store_no_export_and_no_bundle_takes_it_in(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.jsonl")
    assert convert(path, tmp_path / "t.duckdb").notes == [TEXT_LEFT]
    with Store.open(tmp_path / "t.duckdb") as store:
        held = repr([store.connection.execute(f"FROM {table}").fetchall() for table in TABLES])
        assert TEXT_LEFT in report(store.connection, source="x").notes
        for name in ("out.jsonl", "out.parquet"):
            export(store.connection, tmp_path / name)
            assert all(
                not isinstance(record, TextRecord) and getattr(record, "action", None) != TEXT_ACTION
                for record in read_records(tmp_path / name)
            )
        assert next(iter(read_records(tmp_path / "out.jsonl"))) == engine()
    redactor = Redactor()
    learn_trace(path, redactor)
    redacted = redact_trace(path, tmp_path / "bundled.jsonl", redactor).read_text()
    for where in (held, (tmp_path / "out.jsonl").read_text(), redacted):
        assert SECRET not in where
        assert TEXT_ACTION not in where
    with open_source(path) as one, open_source(write(tmp_path / "counts.jsonl", COUNTS)) as other:
        assert report(one.connection, source="x").buckets == report(other.connection, source="x").buckets


@pytest.mark.parametrize(
    ("choice", "requests"),
    [
        (Choice(start=T0 + 20, end=T0 + 25), ["chatcmpl-old", "cmpl-chat"]),
        (Choice(start=T0 + 30), ["cmpl-chat", "chatcmpl-new"]),
        (Choice(workload="chat"), ["cmpl-chat"]),
        (Choice(sequences=frozenset(("new",))), ["chatcmpl-new"]),
    ],
    ids=["from-to", "from", "workload", "sequence"],
)
def test_a_cut_keeps_the_text_of_what_it_keeps(tmp_path: Path, choice: Choice, requests: list[str]) -> None:
    name = "cut.parquet" if choice.workload else "cut.jsonl"
    cut(recorded(tmp_path / "in.jsonl"), tmp_path / name, choice)
    found = list(file_records(tmp_path / name))
    assert [record.request for record in found if isinstance(record, TextRecord)] == requests
    marks = [record for record in found if isinstance(record, ControlRecord) and record.action == TEXT_ACTION]
    assert marks == found[:1]
    assert marks[0].after == {**(MARK.after or {}), "requests": len(requests)}
    assert mode(tmp_path / name) == 0o600
    convert(tmp_path / name, tmp_path / "w.jsonl", text=False)
    cut(write(tmp_path / "counts.jsonl", COUNTS), tmp_path / "plain.jsonl", choice)
    assert list(file_records(tmp_path / "w.jsonl")) == list(file_records(tmp_path / "plain.jsonl"))


def test_a_cut_without_any_text_is_a_trace_as_any_other(tmp_path: Path) -> None:
    texts = [replace(TEXTS[0], request="chatcmpl-of-nobody")]
    written(tmp_path / "in.jsonl", with_text(COUNTS, texts, MARK), TraceNotes())
    cut(tmp_path / "in.jsonl", tmp_path / "out.jsonl", Choice(start=T0))
    assert next(iter(file_records(tmp_path / "out.jsonl"))) == engine()
    assert TEXT_ACTION not in (tmp_path / "out.jsonl").read_text()
    assert mode(tmp_path / "out.jsonl") != 0o600


def test_a_name_that_is_used_again_brings_no_text_of_another_workload(tmp_path: Path) -> None:
    records: list[Record] = [engine(), step(1, [row("a")]), sequence("a", "one", ts=T0 + 0.15, request="chatcmpl-1")]
    records += [finish("a", T0 + 0.2), sequence("a", "two", ts=T0 + 0.25, request="chatcmpl-2"), step(3, [row("a")])]
    texts = [text("chatcmpl-1", T0 + 0.15), text("chatcmpl-2", T0 + 0.24)]
    written(tmp_path / "in.jsonl", with_text(records, texts, MARK), TraceNotes())
    for tag, request in (("one", "chatcmpl-1"), ("two", "chatcmpl-2")):
        cut(tmp_path / "in.jsonl", tmp_path / f"{tag}.jsonl", Choice(workload=tag))
        found = read_records(tmp_path / f"{tag}.jsonl")
        assert [record.request for record in found if isinstance(record, TextRecord)] == [request]


ids = st.from_regex(r"([0-9]{1,2}_)?(chat)?(cmpl-)?[0-9a-f-]{1,12}(-[0-9]{1,2})?(-[0-9a-f]{8})?", fullmatch=True)


@settings(max_examples=15, deadline=None)
@given(st.lists(ids, min_size=10, max_size=30))
def test_an_id_is_the_same_in_sql_and_here(requests: list[str]) -> None:
    query = f"SELECT {answered_sql('r')} FROM (SELECT unnest(?::VARCHAR[]) AS r)"
    assert [found for (found,) in duckdb.execute(query, [requests]).fetchall()] == list(map(answered_as, requests))


@pytest.mark.parametrize("name", FORMS[:2])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path, name: str) -> None:
    import zstandard

    marked = b"\xef\xbb\xbf" + write(tmp_path / "in.jsonl", COUNTS).read_bytes()
    path = tmp_path / name
    path.write_bytes(zstandard.compress(marked) if name.endswith("zst") else marked)
    assert list(read_records(path)) == COUNTS
    assert trace_info(path).steps == 3
    path.write_bytes(marked + marked)
    with pytest.raises(TraceError, match=r":9: not a JSON object"):
        list(read_records(path))


def test_a_store_that_finds_no_room_at_its_end_says_so_and_leaves_no_half_of_itself(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [engine(), *(step(n, [row(f"s{n % 7}", context=n * 7919)]) for n in range(1, 300))])
    with small_disk(tmp_path / "disk", megabytes=3) as disk:
        with pytest.raises(TraceError) as caught:
            convert(tmp_path / "in.jsonl", disk.path / "out.duckdb")
        assert list(disk.path.iterdir()) == []
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/disk/out.duckdb: ")
    assert "No space left on device" in said
    assert "nothing was kept; make room there" in said


def test_what_is_played_leaves_text_out_and_says_so(tmp_path: Path) -> None:
    with open_source(recorded(tmp_path / "t.parquet")) as store:
        assert store.connection.execute("SELECT text FROM notes").fetchall() == [(TEXT_LEFT,)]
        assert store.connection.execute("SELECT count(*) FROM controls").fetchall() == [(0,)]
    assert [type(one) for one in read_records(tmp_path / "t.parquet")].count(StepRecord) == 3
