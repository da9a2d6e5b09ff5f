"""A store of an earlier version comes out like one made today, with everything that was in it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import msgspec
import pytest
import zstandard

from engine.records import ControlRecord
from store.database import Store
from store.ingest import Ingest
from store.judging import Judging, judge_all
from store.kept import keep, read_kept
from store.records import stored_records
from store.report import report
from tests.store.builders import T0, engine, row, sequence, step

SCHEMA_1 = (Path(__file__).parent / "schema_1.sql").read_text()

COLUMNS = """SELECT table_name, column_name, data_type, comment, column_default FROM duckdb_columns()
             WHERE NOT internal ORDER BY table_name, column_index"""
TABLES = """SELECT table_name, comment FROM duckdb_tables() UNION ALL
            SELECT view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY 1"""

BACK_TO_3 = ("ALTER TABLE controls DROP COLUMN numbers", "DROP TABLE kept")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store of version 1 with 60 steps of two rows, one in ten of them the end of a prefill."""
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA_1)
        with Store.memory() as store:
            ingest = Ingest(store)
            for record in (engine(), sequence("a"), sequence("b")):
                ingest.record(record)
            for number in range(1, 61):
                cause = "prefill" if number % 10 == 0 else "full"
                ingest.record(step(number, [row("a", d=3, a=1, cause=cause), row("b", d=2, a=2)], ts=T0 + number))
            ingest.flush()
            for table in ("engines", "buckets", "sequences", "steps", "rows", "finishes"):
                wanted = [name for (name,) in connection.execute(
                    "SELECT column_name FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [table]
                ).fetchall()]  # fmt: skip
                held = store.connection.sql(f"SELECT {', '.join(wanted)} FROM {table}").to_arrow_table()
                connection.register("held", held)
                connection.execute(f"INSERT INTO {table} FROM held")
                connection.unregister("held")
    return path


def test_tables_views_and_comments_are_those_of_a_new_store(old: Path, tmp_path: Path) -> None:
    with Store.open(old) as migrated, Store.open(tmp_path / "new.duckdb") as made:
        for query in (COLUMNS, TABLES):
            assert migrated.connection.execute(query).fetchall() == made.connection.execute(query).fetchall()
    assert (tmp_path / "old.duckdb.schema1").exists()


def test_nothing_recorded_is_lost_and_figures_are_the_same(old: Path) -> None:
    with Store.open(old) as store:
        (bucket,) = report(store.connection, source="old").buckets
        assert (bucket.steps, bucket.drafted, bucket.accepted, bucket.emitted) == (114, 282, 174, 300)
        facts = store.connection.execute("SELECT decode_rows, verified, context_tokens FROM steps ORDER BY id")
        lines = facts.fetchall()
        assert lines[0] == (2, 7, 200)
        assert lines[9] == (1, 3, 100), "the row that ends a prefill is no decode row"


def test_rollups_are_made_anew_from_the_rows(old: Path) -> None:
    with Store.open(old) as store:
        ingest = Ingest(store)
        ingest.record(engine(ts=T0 + 70))
        ingest.record(step(70, [], ts=T0 + 100))
        ingest.close()
        assert store.connection.execute("SELECT sum(count) FROM rollup_10s").fetchall() == [(120,)]


def test_a_store_of_version_2_keeps_its_notes_and_what_the_judge_knew(tmp_path: Path) -> None:
    path = tmp_path / "two.duckdb"
    with Store.open(path) as store:
        ingest = Ingest(store)
        for record in (engine(), sequence("a"), step(1, [row("a")])):
            ingest.record(record)
        ingest.note("heard")
        ingest.close()
        judge_all(store.connection)
        ((up_to, knew),) = store.connection.execute("SELECT up_to, state FROM judge").fetchall()
        plain = zstandard.ZstdDecompressor().decompress(knew).decode()
        for statement in (
            "ALTER TABLE notes DROP COLUMN since", "ALTER TABLE notes DROP COLUMN ts", "DROP TABLE quarantine_1h",
            "DROP TABLE judge", "CREATE TABLE judge (up_to DOUBLE, state VARCHAR)",
            *BACK_TO_3, "UPDATE meta SET schema_version = 2",
        ):  # fmt: skip
            store.connection.execute(statement)
        store.connection.execute("INSERT INTO judge VALUES (?, ?)", [up_to, plain])
    with Store.open(path) as migrated, Store.open(tmp_path / "new.duckdb") as made:
        for query in (COLUMNS, TABLES):
            assert migrated.connection.execute(query).fetchall() == made.connection.execute(query).fetchall()
        assert report(migrated.connection, source="x").notes == ["heard"]
        ((again, state),) = migrated.connection.execute("SELECT up_to, state FROM judge").fetchall()
        assert (again, zstandard.ZstdDecompressor().decompress(state).decode()) == (up_to, plain)
        Judging(migrated.connection).catch_up()


def test_a_store_of_version_3_keeps_its_controls_which_say_nothing_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "three.duckdb"
    done = ControlRecord(T0, "operator", "cap", None, {"cap": None}, {"cap": 2}, 3, "too busy")
    with Store.open(path) as store:
        ingest = Ingest(store)
        ingest.record(done)
        ingest.close()
        for statement in (*BACK_TO_3, "UPDATE meta SET schema_version = 3"):
            store.connection.execute(statement)
    with Store.open(path) as migrated, Store.open(tmp_path / "new.duckdb") as made:
        for query in (COLUMNS, TABLES):
            assert migrated.connection.execute(query).fetchall() == made.connection.execute(query).fetchall()
        decided = msgspec.structs.replace(done, ts=T0 + 1, numbers={"predicted": 0.06})
        ingest = Ingest(migrated)
        ingest.record(engine())
        ingest.record(decided)
        ingest.close()
        keep(migrated.connection, "lanes", b"{}")
        assert read_kept(migrated.connection, "lanes") == b"{}"
        controls = [one for one in stored_records(migrated.connection) if isinstance(one, ControlRecord)]
        assert controls == [done, decided]
