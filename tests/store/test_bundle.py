"""Bundles: read like any trace, whole or not there, and damaged ones said to be; and exports of what is newer."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records import (
    ControlRecord,
    EngineRecord,
    FinishRecord,
    GapRecord,
    Record,
    SequenceRecord,
    StateRecord,
    StepRecord,
)
from store.bundle import archive as module
from store.bundle.archive import BundleError, write_bundle
from store.bundle.contents import PARTS, README, TRACE, Bundle
from store.bundle.parts import json_part, learn_trace, log_part, redact_trace
from store.bundle.readme import readme
from store.bundle.versions import versions
from store.database import Store
from store.export import ExportError, export
from store.records import stored_records
from store.redact.private import Private
from store.redact.redactor import Redactor
from store.replay import replay_headless
from store.report import report
from store.source import open_source
from store.trace import TraceError, TraceWriter, read_records, trace_info
from tests.store.builders import T0, engine, finish, row, sequence, step, store_of, trace_of

RECORDS = trace_of([row("a", a=number % 5) for number in range(20)])
FOREIGN = b"PK\x05\x06" + bytes(18)
"""A ZIP with nothing in it."""


def trace(path: Path, records: list[Record] = RECORDS) -> Path:
    with TraceWriter(path) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, bytes | Path]:
    return {
        TRACE: trace(tmp_path / "records.jsonl.zst"),
        "versions.json": b'{"specdeck": "0.1.0"}\n',
        "station.log": b"all is well\n" * 1000,
    }


def written(out: Path, parts: dict[str, bytes | Path], **missing: str) -> Path:
    write_bundle(Bundle("a test", parts, missing), out, T0)
    return out


@pytest.fixture
def bundled(tmp_path: Path, parts: dict[str, bytes | Path]) -> Path:
    return written(tmp_path / "b.zip", parts)


# Reading


def test_a_bundle_reads_as_the_trace_in_it(bundled: Path, parts: dict[str, bytes | Path]) -> None:
    assert list(read_records(bundled)) == RECORDS
    with open_source(bundled) as store, open_source(str(parts[TRACE])) as plain:
        assert report(store.connection, source="x") == report(plain.connection, source="x")
    assert replay_headless(bundled).report.total is not None
    info = trace_info(bundled)
    assert info.compressed
    assert (info.steps, info.bytes) == (20, bundled.stat().st_size)


def test_a_bundle_cut_off_anywhere_is_an_error_that_names_it(tmp_path: Path, bundled: Path) -> None:
    whole = bundled.read_bytes()
    cut = tmp_path / "cut.zip"
    for length in range(4, len(whole), 13):
        cut.write_bytes(whole[:length])
        with pytest.raises(TraceError, match=r"cut\.zip"):
            list(read_records(cut))


def test_a_bundle_with_any_byte_changed_is_read_right_or_refused(tmp_path: Path, bundled: Path) -> None:
    whole = bundled.read_bytes()
    changed = tmp_path / "changed.zip"
    refused = 0
    for place in range(4, len(whole), 5):
        for bits in (0x01, 0xFF):
            changed.write_bytes(whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :])
            try:
                assert list(read_records(changed)) == RECORDS
            except TraceError:
                refused += 1
    assert refused > 20


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_that_begin_like_a_zip_are_more_than_an_error(tail: bytes) -> None:
    path = Path(os.environ["SPECDECK_RUNTIME_DIR"]).with_name("fuzzed.zip")
    for head in (b"PK\x03\x04", b"PK\x05\x06"):
        path.write_bytes(head + tail)
        with pytest.raises(TraceError):
            list(read_records(path))
        path.write_bytes(head + tail + FOREIGN)
        with pytest.raises(TraceError):
            list(read_records(path))


def test_a_zip_of_somebody_elses_is_told_from_a_bundle_without_records(
    tmp_path: Path, parts: dict[str, bytes | Path]
) -> None:
    foreign = tmp_path / "holiday.zip"
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("beach.jpg", b"sun")
    with pytest.raises(TraceError, match="no bundle"):
        list(read_records(foreign))
    (tmp_path / "empty.zip").write_bytes(FOREIGN)
    with pytest.raises(TraceError, match="no bundle"):
        list(read_records(tmp_path / "empty.zip"))
    without = written(tmp_path / "without.zip", {"versions.json": parts["versions.json"]}, **{TRACE: "it was lost"})
    with pytest.raises(TraceError, match=r"README\.txt says why"):
        list(read_records(without))


def test_a_member_that_is_no_compressed_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(TRACE, msgspec.json.encode(engine()) + b"\n")
    with pytest.raises(TraceError, match="compression"):
        list(read_records(path))


# Writing


def test_it_holds_its_parts_in_order_and_says_how_large_they_are(
    tmp_path: Path, parts: dict[str, bytes | Path]
) -> None:
    sizes = write_bundle(Bundle("a test", parts, {}), tmp_path / "b.zip", T0)
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert archive.namelist() == [README, TRACE, "versions.json", "station.log"]
        assert {member.filename: member.file_size for member in archive.infolist()} == sizes
        assert archive.read("station.log") == parts["station.log"]
        assert archive.testzip() is None
        stored = {member.filename: member.compress_type for member in archive.infolist()}
    assert stored[TRACE] == zipfile.ZIP_STORED
    assert stored["station.log"] == zipfile.ZIP_DEFLATED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.zip", "records.jsonl.zst"]


def test_its_readme_says_what_is_in_it_what_is_missing_and_why(tmp_path: Path, parts: dict[str, bytes | Path]) -> None:
    out = written(tmp_path / "b.zip", parts, **{"doctor.json": "left out", "engine.log": "no engine"})
    with zipfile.ZipFile(out) as archive:
        text = archive.read(README).decode()
    there, missing = text.partition("What is missing")[0], text.partition("What is missing")[2]
    for name in parts:
        assert f"  {name} " in there
    assert "doctor.json      left out\n" in missing
    assert "engine.log       no engine\n" in missing
    assert "never hold a prompt or an answer" in text
    assert "specdeck replay FILE" in text
    assert "tag-1" in text
    assert "tag-1" not in readme(Bundle("x", parts, {}, tags_kept=True), T0)
    assert set(PARTS) >= set(parts)


def test_nothing_is_ever_overwritten(
    tmp_path: Path, parts: dict[str, bytes | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "mine.zip"
    out.write_text("mine")
    with pytest.raises(BundleError, match="exists"):
        written(out, parts)
    out.unlink()
    write = module._write

    def meanwhile(*arguments: object) -> dict[str, int]:
        out.write_text("mine")
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_write", meanwhile)
    with pytest.raises(BundleError, match="exists by now"):
        written(out, parts)
    out.unlink()
    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(BundleError, match="exists by now"):
        written(out, parts)
    assert out.read_text() == "mine"
    assert list(tmp_path.glob(".*")) == []


def no_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links_will_do(
    tmp_path: Path, parts: dict[str, bytes | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    assert list(read_records(written(tmp_path / "b.zip", parts))) == RECORDS


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="can't be written"):
        written(tmp_path / "b.zip", {TRACE: tmp_path / "nowhere"})
    with pytest.raises(BundleError, match="can't be written"):
        written(tmp_path / "no" / "folder" / "b.zip", {})
    assert list(tmp_path.iterdir()) == []


# Parts


def test_a_trace_is_redacted_in_the_order_of_its_records(tmp_path: Path) -> None:
    records = [*RECORDS[:5], ControlRecord(T0 + 0.35, "jane", "mode", why="code is slow"), StateRecord(T0 + 0.4, {})]
    raw, redactor = trace(tmp_path / "raw.jsonl", records), Redactor()
    learn_trace(raw, redactor)
    read = list(read_records(redact_trace(raw, tmp_path / "out.jsonl.zst", redactor)))
    assert [type(record) for record in read] == [type(record) for record in records[:-1]]
    (control,) = (record for record in read if isinstance(record, ControlRecord))
    assert (control.actor, control.why) == ("operator", "tag-1 is slow")


def test_of_a_log_whole_lines_at_its_end_are_taken(tmp_path: Path) -> None:
    log = tmp_path / "station.log"
    log.write_bytes(b"first\nsecond api_key=abc\nthird \xff\n")
    redactor = Redactor()
    assert log_part(log, redactor) == "first\nsecond api_key=<secret>\nthird \ufffd\n".encode()
    for limit in range(1, log.stat().st_size):
        text = log_part(log, redactor, limit)
        assert b"abc" not in text
        assert text in (b"", "third \ufffd\n".encode(), "second api_key=<secret>\nthird \ufffd\n".encode())
    with pytest.raises(OSError, match="nowhere"):
        log_part(tmp_path / "nowhere.log", redactor)


def test_json_parts_are_redacted_and_for_reading() -> None:
    text = json_part({"workload": "acme", "target": "/x/llama"}, Redactor(Private())).decode()
    assert text == '{\n  "workload": "tag-1",\n  "target": "llama"\n}\n'


def test_versions_come_without_loading_what_they_are_of() -> None:
    found = versions()
    assert found["duckdb"] == duckdb.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["cores"] == os.cpu_count()
    assert found["memory_bytes"] > 2**28
    script = (
        "import sys; from store.bundle.versions import versions; versions(); print({'vllm', 'torch'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"


# Exports of what is newer


def hour() -> list[Record]:
    """Two sequences that end, one that goes on, one that only waits; a step every second for 100 s."""
    records: list[Record] = [engine(), sequence("old", ts=T0), sequence("long", "chat", ts=T0 + 1)]
    for number in range(1, 101):
        names = ["long"] if number > 20 else ["old", "long"]
        names += ["new"] if number > 60 else []
        records.append(step(number, [row(name, a=number % 5) for name in names], ts=T0 + number, duration_ms=900.0))
    return [
        *records, ControlRecord(T0 + 10, "operator", "cap", after={"cap": 3}), GapRecord("e0", T0 + 15, 2),
        finish("old", T0 + 20), ControlRecord(T0 + 30, "operator", "cap", after={"cap": 2}),
        StateRecord(T0 + 40, {"a": 1}), sequence("new", ts=T0 + 60), sequence("waits", ts=T0 + 70),
        ControlRecord(T0 + 80, "operator", "cap", after={"cap": 4}), GapRecord("e0", T0 + 85, 2),
        StateRecord(T0 + 90, {}),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def recorded() -> Iterator[Store]:
    with store_of(sorted(hour(), key=lambda record: record.ts)) as store:
        yield store


def newer(store: Store, since: float) -> list[Record]:
    return list(stored_records(store.connection.cursor(), since))


def test_what_is_newer_comes_with_what_it_needs(recorded: Store) -> None:
    records = newer(recorded, T0 + 50)
    assert [record.ts for record in records if isinstance(record, StepRecord)] == [T0 + n for n in range(51, 101)]
    assert [record.engine for record in records if isinstance(record, EngineRecord)] == ["e0"]
    assert {record.seq for record in records if isinstance(record, SequenceRecord)} == {"long", "new", "waits"}
    assert [record for record in records if isinstance(record, FinishRecord)] == []
    assert [record.ts for record in records if isinstance(record, GapRecord)] == [T0 + 85]
    assert [record.ts for record in records if isinstance(record, StateRecord)] == [T0 + 90]
    assert [record.after for record in records if isinstance(record, ControlRecord)] == [{"cap": 2}, {"cap": 4}]


def test_the_report_of_the_cut_is_that_of_the_same_window(recorded: Store, tmp_path: Path) -> None:
    whole = report(recorded.connection, source="x", window=30)
    export(recorded.connection, tmp_path / "cut.jsonl", since=T0 + 70)
    with open_source(tmp_path / "cut.jsonl") as cut:
        again = report(cut.connection, source="x")
    assert msgspec.structs.replace(again, notes=[]) == whole  # a note says that its state is none a judge can read
    info = trace_info(tmp_path / "cut.jsonl")
    assert info.end == T0 + 100
    assert info.start == T0 + 1, "the arrival of the sequence that goes on, not the control that is older"


def test_since_the_beginning_is_everything(recorded: Store) -> None:
    assert newer(recorded, 0.0) == list(stored_records(recorded.connection.cursor()))
    assert newer(recorded, float("-inf")) == newer(recorded, 0.0)


@settings(deadline=None, max_examples=25)
@given(st.floats(T0 - 5, T0 + 110))
def test_every_row_that_is_newer_finds_its_sequence_in_the_same_cut(recorded: Store, since: float) -> None:
    records = newer(recorded, since)
    steps = [record for record in records if isinstance(record, StepRecord)]
    assert [record.step for record in steps] == [number for number in range(1, 101) if T0 + number > since]
    named = {record.seq for record in records if isinstance(record, SequenceRecord)}
    assert named >= {one.seq for record in steps for one in record.rows}
    assert sum(isinstance(record, EngineRecord) for record in records) == 1


def test_a_cut_does_not_take_what_the_operator_had_set_for_a_mismatch(tmp_path: Path) -> None:
    off = {"limit_draft": "off", "k_draft": 0, "k_verify": 0}
    records: list[Record] = [
        engine(), sequence("a"), step(1, [row("a")]),
        ControlRecord(T0 + 0.15, "operator", "mode", None, {"mode": "static", "k": 4}, {"mode": "off"}, 2),
        *(step(number, [row("a", d=0, a=0, limit="off")], **off) for number in range(2, 80)),
    ]  # fmt: skip
    with store_of(records) as store:
        assert report(store.connection, source="x").mismatches == []
        export(store.connection, tmp_path / "cut.jsonl", since=T0 + 4)
    with open_source(tmp_path / "cut.jsonl") as cut:
        assert report(cut.connection, source="x").mismatches == []


def test_only_a_trace_or_a_store_can_begin_at_a_moment(recorded: Store, tmp_path: Path) -> None:
    for name in ("a.csv", "a"):
        with pytest.raises(ExportError, match="only a trace and a store"):
            export(recorded.connection, tmp_path / name, since=T0)
    assert list(tmp_path.iterdir()) == []
