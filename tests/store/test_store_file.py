"""The DuckDB file: whose it is, which version it has, and what a killed process leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from store import migrations, schema
from store.database import NewerSchema, Store, StoreBusy, StoreError
from store.migrations import NoMigration, migrate
from store.tables import TABLES
from tests.store.builders import T0, engine, row, sequence, step

NOW = schema.SCHEMA_VERSION
NEXT = NOW + 1

HOLDER = """
import sys, time
from store.database import Store
store = Store.open(sys.argv[1])
print("open", flush=True)
time.sleep(600)
"""

WRITER = """
import sys
from store.database import Store
from store.ingest import Ingest
from tests.store.builders import engine, row, sequence, step
ingest = Ingest(Store.open(sys.argv[1]))
ingest.record(engine()); ingest.record(sequence("a"))
for number in range(1, 10**9):
    ingest.record(step(number, [row("a")] * 5))
    if number % 20 == 0:
        ingest.flush()
        print(number, flush=True)
"""


def python(code: str, path: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True, cwd=root)


def test_a_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    path = tmp_path / "held.duckdb"
    holder = python(HOLDER, path)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreBusy, match=f"process {holder.pid}") as busy:
            Store.open(path)
        assert busy.value.pid == holder.pid
        with pytest.raises(StoreBusy):
            Store.open(path, read_only=True)
    finally:
        holder.kill()
        holder.wait()
    Store.open(path).close()


def test_after_kill_9_the_store_opens_with_all_flushes_but_perhaps_the_last(tmp_path: Path) -> None:
    path = tmp_path / "killed.duckdb"
    writer = python(WRITER, path)
    assert writer.stdout is not None
    flushed = 0
    deadline = time.monotonic() + 120
    while flushed < 400 and time.monotonic() < deadline:
        flushed = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    said = [int(line) for line in writer.stdout.read().split()]
    flushed = said[-1] if said else flushed
    with Store.open(path) as store:
        ((steps, rows),) = store.connection.execute(
            "SELECT (SELECT count(*) FROM steps), (SELECT count(*) FROM rows)"
        ).fetchall()
        comments = store.connection.execute("SELECT count(*) FROM duckdb_tables() WHERE comment IS NOT NULL").fetchall()
    assert steps >= flushed
    assert steps % 20 == 0, "a flush is whole or not there"
    assert rows == 5 * steps
    assert comments == [(len(TABLES),)]


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "newer.duckdb"
    with Store.open(path) as store:
        store.connection.execute("UPDATE meta SET schema_version = 99")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(NewerSchema, match="schema 99"):
            Store.open(path, read_only=read_only)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_older_schema_is_migrated_after_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "older.duckdb"
    Store.open(path).close()
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT)
    monkeypatch.setitem(migrations.MIGRATIONS, NOW, lambda c: c.execute("ALTER TABLE notes ADD COLUMN more INTEGER"))
    with pytest.raises(StoreError, match="older"):
        Store.open(path, read_only=True)
    with Store.open(path) as store:
        assert store.connection.execute("SELECT schema_version FROM meta").fetchall() == [(NEXT,)]
        store.connection.execute("SELECT more FROM notes")
    with duckdb.connect(str(tmp_path / f"older.duckdb.schema{NOW}"), read_only=True) as copy:
        assert copy.execute("SELECT schema_version FROM meta").fetchall() == [(NOW,)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "older.duckdb"
    Store.open(path).close()
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT)
    monkeypatch.setitem(migrations.MIGRATIONS, NOW, lambda c: c.execute("DROP TABLE notes; SELECT no_such_thing"))
    with pytest.raises(StoreError, match=f"schema{NOW}"):
        Store.open(path)
    monkeypatch.undo()
    with Store.open(path) as store:
        store.connection.execute("FROM notes")


def test_a_missing_migration_step_is_named() -> None:
    with Store.memory() as store, pytest.raises(NoMigration, match="schema 2 has no migration to 3"):
        migrate(store.connection, 1, 3, {1: lambda _: None})


@pytest.mark.parametrize("content", [b"hello" * 1000, b""])
def test_a_file_that_is_no_database_is_refused_or_made_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.duckdb"
    path.write_bytes(content)
    if content:
        with pytest.raises(StoreError, match=r"file\.duckdb"):
            Store.open(path)
        assert path.read_bytes() == content
    else:
        path.unlink()
        Store.open(path).close()


def test_somebody_elses_database_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE theirs (a INTEGER)")
    with pytest.raises(StoreError, match="no specdeck store"):
        Store.open(path)


def test_a_store_that_is_not_there_is_only_made_when_asked(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such store"):
        Store.open(tmp_path / "none.duckdb", create=False)


def test_every_table_view_and_column_has_a_comment(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb") as store:
        bare = store.connection.execute(
            """SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal
               UNION ALL SELECT table_name, NULL FROM duckdb_tables() WHERE comment IS NULL
               UNION ALL SELECT view_name, NULL FROM duckdb_views() WHERE comment IS NULL AND NOT internal"""
        ).fetchall()
    assert bare == []


def test_a_failed_write_keeps_what_was_buffered(tmp_path: Path) -> None:
    from store.ingest import Ingest

    with Store.open(tmp_path / "full.duckdb") as store:
        ingest = Ingest(store)
        for record in (engine(), sequence("a"), step(1, [row("a")])):
            ingest.record(record)
        store.connection.execute("ALTER TABLE rows RENAME TO elsewhere")
        with pytest.raises(StoreError, match="can't be written"):
            ingest.flush()
        store.connection.execute("ALTER TABLE elsewhere RENAME TO rows")
        ingest.flush()
        assert store.connection.execute("SELECT count(*) FROM rows").fetchall() == [(1,)]
        assert store.connection.execute("SELECT min(ts) FROM steps").fetchall() == [(T0 + 0.1,)]
