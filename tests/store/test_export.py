"""Exports: one moment of the store, complete or not there, while recording goes on. SQL sees one store only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from engine.records import ControlRecord, SequenceRecord, StepRecord
from store import export as exports
from store import schema
from store.database import Store, StoreError
from store.export import ExportError, export, kind_of
from store.ingest import Ingest
from store.query import SqlError, run_sql
from store.replay import replay_headless
from store.report import report
from store.retention import Retention
from store.rollup import roll_up
from store.source import open_source
from store.trace import TraceWriter, read_records
from tests.store.builders import T0, announcement, arrived, engine, frame, row, sequence, step, store_of, trace_of

HOUR = 3600.0

RECORDS = trace_of([row(d=4, a=2)] * 30 + [row(d=1, a=2)])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.duckdb") as store:
        ingest = Ingest(store)
        for record in RECORDS:
            ingest.record(record)
        ingest.close()
        yield store


@pytest.fixture
def exported(store: Store, tmp_path: Path) -> Path:
    export(store.connection, tmp_path / "copy.duckdb")
    return tmp_path / "copy.duckdb"


@pytest.mark.parametrize("name", ["copy.duckdb", "copy.jsonl", "copy.jsonl.zst"])
def test_a_copy_gives_the_same_report(store: Store, tmp_path: Path, name: str) -> None:
    result = export(store.connection, tmp_path / name)
    assert result.bytes > 0
    with open_source(tmp_path / name) as copy:
        assert report(copy.connection, source="x") == report(store.connection, source="x")


def test_two_at_once_into_one_file_never_mix(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, plain = tmp_path / "night.jsonl", exports._WRITERS["jsonl"]

    def half_way(cursor: duckdb.DuckDBPyConnection, path: Path, since: float | None) -> None:
        monkeypatch.setitem(exports._WRITERS, "jsonl", plain)
        path.write_text("half")
        export(store.connection, out)
        assert path.read_text() == "half"

    monkeypatch.setitem(exports._WRITERS, "jsonl", half_way)
    with pytest.raises(ExportError, match="exists; choose another name"):
        export(store.connection, out)
    assert len(list(read_records(out))) >= len(RECORDS) - 1
    assert list(tmp_path.glob(".*partial*")) == []


def test_a_copied_database_keeps_views_and_comments_for_any_client(exported: Path) -> None:
    with duckdb.connect(str(exported), read_only=True) as client:
        ((acceptance,),) = client.execute("SELECT pooled_acceptance FROM bucket_metrics").fetchall()
        columns = client.execute(
            "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
        names = client.execute(
            """SELECT table_name, comment FROM duckdb_tables() WHERE NOT internal
               UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"""
        ).fetchall()
    assert acceptance == 0.5
    assert {name for name, _ in names} == {*schema.TABLES, *schema.VIEWS}
    assert [name for name, comment in names if not comment] == []
    assert {table for table, _, _ in columns} == {*schema.TABLES, *schema.VIEWS}
    assert [(table, column) for table, column, comment in columns if not comment] == []


@pytest.fixture
def aged(tmp_path: Path) -> Iterator[Store]:
    """A week and a half: hours, 5-min cells, 10-s cells, and rows of the last two days."""
    with Store.open(tmp_path / "aged.duckdb") as store:
        ingest = Ingest(store)
        ingest.record(engine())
        for number in range(1, 260):
            name = f"s{number // 3}"
            ingest.record(sequence(name, "code" if number % 2 else "chat", ts=T0 + number * HOUR))
            rows = [row(name, d=4, a=number % 5), row(name, d=1, a=2)]
            ingest.record(step(number, rows, ts=T0 + number * HOUR + number))
        ingest.note("seen", T0, T0 + HOUR)
        ingest.close()
        keeper = Retention(store.cursor(), store.path)
        while keeper.slice(T0 + 259 * HOUR):
            pass
        yield store


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "rollups only"])
def test_a_copied_database_gives_the_same_report_of_any_window_also_where_rows_are_gone(
    aged: Store, tmp_path: Path, rows: bool
) -> None:
    if not rows:
        roll_up(aged.connection, T0 + 400 * HOUR)
        keeper = Retention(aged.cursor(), aged.path)
        while keeper.slice(T0 + 400 * HOUR):
            pass
    ((kept,),) = aged.connection.execute("SELECT count(*) FROM rows").fetchall()
    assert 0 < kept < 100 if rows else kept == 0
    export(aged.connection, tmp_path / "copy.duckdb")
    with open_source(tmp_path / "copy.duckdb") as copy:
        for bounds in ({}, {"window": 90 * HOUR}, {"window": 500.0}, {"window": 9000.0, "at": T0 + 30.5 * HOUR}):
            expected = report(aged.connection, source="x", **bounds)
            assert report(copy.connection, source="x", **bounds) == expected
            assert expected.total is not None
    assert report(aged.connection, source="x").total.decode_rows == 259  # type: ignore[union-attr]
    assert report(aged.connection, source="x").quarantined == 259


def test_a_trace_of_what_rows_are_left_gives_the_report_of_their_time(aged: Store, tmp_path: Path) -> None:
    export(aged.connection, tmp_path / "copy.jsonl.zst")
    with open_source(tmp_path / "copy.jsonl.zst") as copy:
        window = 40 * HOUR
        expected = report(aged.connection, source="x", window=window)
        assert report(copy.connection, source="x", window=window).buckets == expected.buckets
        assert report(copy.connection, source="x", window=window).quarantined == expected.quarantined == 40


def test_an_unknown_temperature_stays_unknown(tmp_path: Path) -> None:
    records = [engine(), sequence("a", temperature=None), sequence("b", temperature=0.0), step(1, [row("a"), row("b")])]
    with store_of(records) as store:
        export(store.connection, tmp_path / "t.jsonl")
        assert '"temperature":null' in (tmp_path / "t.jsonl").read_text()
        with open_source(tmp_path / "t.jsonl") as again:
            names = [bucket.temperature for bucket in report(again.connection, source="x").buckets]
        assert names == [bucket.temperature for bucket in report(store.connection, source="x").buckets]
        assert sorted(map(str, names)) == ["0", "unknown"]


def test_a_trace_holds_what_a_decision_was_made_by(tmp_path: Path) -> None:
    numbers = {"predicted": 0.06, "hazards": [0.7, 0.5], "others": {"chat": 2}, "marginal": None}
    control = ControlRecord(
        T0 + 1, "adaptive", "k", "code", {"k": 4}, {"k": 2}, 5, "code K 4→2, predicted +6 %", numbers
    )
    with store_of([*RECORDS, control]) as store:
        export(store.connection, tmp_path / "t.jsonl")
    with open_source(tmp_path / "t.jsonl") as again:
        export(again.connection, tmp_path / "again.jsonl")
    for name in ("t.jsonl", "again.jsonl"):
        assert [one for one in read_records(tmp_path / name) if isinstance(one, ControlRecord)] == [control]


def test_a_compact_trace_holds_what_the_lines_hold(store: Store, tmp_path: Path) -> None:
    for name in ("t.jsonl", "t.parquet"):
        export(store.connection, tmp_path / name)
    assert list(read_records(tmp_path / "t.parquet")) == list(read_records(tmp_path / "t.jsonl"))
    assert not list(tmp_path.glob(".*"))


def test_parquet_and_csv_hold_the_rows(store: Store, tmp_path: Path) -> None:
    assert export(store.connection, tmp_path / "folder").kind == "parquet"
    assert export(store.connection, tmp_path / "rows.csv").kind == "csv"
    for name in ("folder/row_facts.parquet", "rows.csv"):
        facts = duckdb.sql(f"SELECT count(*), sum(accepted), any_value(workload) FROM '{tmp_path / name}'").fetchall()
        assert facts == [(30, 60, "code")]


def test_an_export_while_recording_goes_on_is_one_moment(store: Store, tmp_path: Path) -> None:
    ingest = Ingest(store)
    ingest.record(engine(ts=T0 + 100))
    ingest.record(sequence("w", ts=T0 + 100))
    done = threading.Event()

    def record() -> None:
        number = 0
        while not done.is_set() and number < 5000:
            for _ in range(10):
                number += 1
                ingest.record(step(1000 + number, [row("w")] * 3, ts=T0 + 100 + number * 0.01))
            ingest.flush()

    writer = threading.Thread(target=record)
    writer.start()
    try:
        for number in range(3):
            with store.connection.cursor() as cursor:
                export(cursor, tmp_path / f"{number}.duckdb")
    finally:
        done.set()
        writer.join()
    for number in range(3):
        with duckdb.connect(str(tmp_path / f"{number}.duckdb"), read_only=True) as copy:
            query = "SELECT (SELECT count(*) FROM rows WHERE step > 31), (SELECT count(*) FROM steps WHERE id > 31)"
            ((rows, steps),) = copy.execute(query).fetchall()
            assert rows == 3 * steps
            assert steps % 10 == 0


def test_nothing_is_overwritten_and_nothing_is_left_over(store: Store, tmp_path: Path) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(ExportError, match="exists"):
        export(store.connection, tmp_path / "there.jsonl")
    assert (tmp_path / "there.jsonl").read_text() == "mine"
    with pytest.raises(ExportError, match="can't be written"):
        export(store.connection, tmp_path / "no" / "such" / "folder" / "x.csv")
    with Store.memory() as empty, pytest.raises(StoreError, match="no engine"):
        export(empty.connection, tmp_path / "empty.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir() if "partial" in path.name) == []


def test_a_file_gives_way_where_that_is_asked_for_but_never_the_store_itself(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "copy.csv"
    out.write_text("old")
    export(store.connection, out, replace=True)
    assert out.read_text().startswith("ts,")
    (tmp_path / "folder").mkdir()
    (tmp_path / "alias.duckdb").symlink_to(tmp_path / "store.duckdb")
    before = len(list(tmp_path.iterdir()))
    for name, why in (("store.duckdb", "store itself"), ("alias.duckdb", "store itself"), ("folder", "no file")):
        with pytest.raises(ExportError, match=why):
            export(store.connection, tmp_path / name, replace=True)
    assert len(list(tmp_path.iterdir())) == before


def test_a_name_says_what_to_write() -> None:
    assert [kind_of(Path(name)) for name in ("a.duckdb", "a.jsonl", "a.jsonl.zst", "a.parquet", "a.csv", "a")] == [
        "duckdb", "jsonl", "jsonl", "compact", "csv", "parquet",
    ]  # fmt: skip
    with pytest.raises(ExportError):
        kind_of(Path("a.xlsx"))


def test_sql_answers_with_columns_and_rows(exported: Path) -> None:
    result = run_sql(exported, "SELECT workload, steps, alpha FROM bucket_metrics")
    assert (result.columns, result.rows, result.truncated) == (
        ["workload", "steps", "alpha"],
        [["code", 30, 0.5]],
        False,
    )
    limited = run_sql(exported, "SELECT 'NaN'::DOUBLE, [1, 2] FROM rows", max_rows=2)
    assert (limited.rows, limited.truncated) == ([[None, [1, 2]]] * 2, True)


def test_sql_runs_on_a_trace(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl.zst") as writer:
        for record in RECORDS:
            writer.write(record)
    assert run_sql(tmp_path / "t.jsonl.zst", "SELECT count(*) FROM row_facts").rows == [[30]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM glob('{folder}/*')",
        "ATTACH '{folder}/other.duckdb' AS other",
        "COPY rows TO '{folder}/stolen.csv'",
        "EXPORT DATABASE '{folder}/stolen'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "LOAD httpfs",
        "FROM question",
        "CREATE TABLE mine (a INTEGER)",
        "DELETE FROM rows",
        "no sql at all",
    ],
)
def test_sql_reads_no_other_file_and_changes_nothing(exported: Path, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nhunter2\n")
    before = exported.read_bytes()
    with pytest.raises(SqlError) as refused:
        run_sql(exported, sql.format(secret=secret, folder=tmp_path))
    assert "hunter2" not in str(refused.value)
    assert not list(tmp_path.glob("stolen*"))
    assert exported.read_bytes() == before


def test_sql_that_never_ends_is_stopped(exported: Path) -> None:
    with pytest.raises(SqlError, match="longer than"):
        run_sql(exported, "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b", timeout_seconds=3)


def test_replay_reports_what_the_trace_holds_at_any_speed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as writer:
        for record in RECORDS:
            writer.write(record)
    waited: list[float] = []
    result = replay_headless(path, 10.0, sleep=waited.append)
    with open_source(path) as store:
        assert result.report == report(store.connection, source=str(path))
    assert sum(waited) == pytest.approx(3.1 / 10)
    assert [alert.kind for alert in result.alerts] == ["quarantine"]
    assert replay_headless(path) == result
    old = [engine(ts=T0 - 50 * HOUR), ControlRecord(T0 - 9 * HOUR, "operator", "mode"), *RECORDS[1:]]
    with TraceWriter(tmp_path / "late.jsonl") as writer:
        for record in old:
            writer.write(record)
    waited.clear()
    replay_headless(tmp_path / "late.jsonl", 10.0, sleep=waited.append)
    assert sum(waited) == pytest.approx(3.1 / 10), "what was there before the first step is there at once"
    with pytest.raises(ValueError, match="speed"):
        replay_headless(path, 0)


def test_sequences_of_two_boots_have_names_of_their_own_in_a_trace(tmp_path: Path) -> None:
    """An engine counts its handles from 1 again after a restart: a plain reader must not take two for one."""
    store = Store.memory()
    ingest = Ingest(store)
    for boot in ("b1", "b2"):
        ingest.announcement(announcement(boot=boot), T0)
        ingest.frame(frame(1, [row("1")], [arrived(1, boot)], boot=boot), T0 + 1)
    ingest.flush()
    out = tmp_path / "two.jsonl"
    export(store.connection, out)
    records = list(read_records(out))
    named = {record.seq: record.workload for record in records if isinstance(record, SequenceRecord)}
    assert sorted(named.values(), key=str) == ["b1", "b2"]
    assert {row.seq for record in records if isinstance(record, StepRecord) for row in record.rows} == set(named)
    with open_source(out) as again:
        assert report(again.connection, source="again").buckets == report(store.connection, source="once").buckets
    store.close()
